import { type Embedder, ThroughlineError } from "@throughline/core";
import { assertKnownOptions, embedTexts, optionKinds, type OptionTable } from "@throughline/core/internal";
import { factsOf, prefixed, statedKinds } from "./known-models.ts";

/** Names the folder and the properties of the model of `localEmbedder`. */
export interface LocalEmbedderOptions {
  /** Names the folder of the model, with `config.json`, `tokenizer.json` and `onnx/`. An absolute path. */
  readonly modelPath: string;
  /** States the length of the vectors. @default that of a model that is known by the name of its folder */
  readonly dimensions?: number | undefined;
  /** Sets how the vectors of the words become one. @default "mean" */
  readonly pooling?: "mean" | "cls" | "last_token" | undefined;
  /** Names the numbers of the weights, as `onnx/` has them: `fp32`, `q8`, `q4`, … @default "q8" */
  readonly dtype?: string | undefined;
  /** Limits the tokens of one text. @default that of a known model, else 512 */
  readonly maxTokens?: number | undefined;
  /** Stands before each question. @default that of a known model, else none */
  readonly queryPrefix?: string | undefined;
  /** Stands before each text in which answers are looked for. @default that of a known model, else none */
  readonly passagePrefix?: string | undefined;
}

/** The part of `@huggingface/transformers` that is used. */
export interface Transformers {
  readonly env: { allowRemoteModels: boolean; allowLocalModels: boolean; localModelPath: string };
  pipeline(
    task: "feature-extraction",
    model: string,
    options: { readonly dtype: string; readonly local_files_only: true },
  ): Promise<
    (
      texts: readonly string[],
      options: { readonly pooling: string; readonly normalize: true },
    ) => Promise<{ readonly dims: readonly number[]; readonly data: unknown }>
  >;
}

const { filledText, oneOf, required } = optionKinds;
const table: OptionTable<LocalEmbedderOptions> = {
  modelPath: required(filledText),
  pooling: oneOf(["mean", "cls", "last_token"]),
  dtype: filledText,
  ...statedKinds,
};

const library = "@huggingface/transformers";

/**
 * Creates an embedder over a model in a folder of this machine, by the package `@huggingface/transformers`. Nothing is downloaded and
 * nothing leaves the machine.
 * @throws {ThroughlineError} CONFIG_INVALID for a wrong option or an unknown model without `dimensions`; from `embed`:
 *   MODEL_SDK_MISSING without the package, EMBEDDING_FAILED, EMBEDDING_INVALID, ABORTED
 * @example
 * const embedder = localEmbedder({ modelPath: "/models/multilingual-e5-small" });
 */
export function localEmbedder(options: LocalEmbedderOptions): Embedder {
  return localWith(options, () => {
    // @ts-expect-error The package is an optional peer, which is not installed where this package is built.
    return import("@huggingface/transformers") as Promise<Transformers>;
  });
}

/** Creates the embedder with another way to load the library. */
export function localWith(options: LocalEmbedderOptions, load: () => Promise<Transformers>): Embedder {
  assertKnownOptions<LocalEmbedderOptions>("localEmbedder", options, table, "options", "CONFIG_INVALID");
  const { modelPath, pooling = "mean", dtype = "q8" } = options;
  const folders = modelPath.split(/[/\\]/).filter((name) => name !== "");
  const model = folders.at(-1) ?? "";
  const facts = factsOf({ ...options, model });
  const { dimensions, maxTokens } = facts;
  const name = `local/${model}@${dimensions}`;
  type Extractor = Awaited<ReturnType<Transformers["pipeline"]>>;
  let extractor: Promise<Extractor> | null = null;
  const open = async (): Promise<Extractor> => {
    const transformers = await loaded(load);
    Object.assign(transformers.env, { allowRemoteModels: false, allowLocalModels: true, localModelPath: "" });
    return transformers.pipeline("feature-extraction", modelPath, { dtype, local_files_only: true });
  };
  const raw: Embedder = {
    id: name,
    dimensions,
    // A larger batch holds the processor for longer, and a question waits behind it.
    maxBatch: 8,
    maxTokens,
    async embed(texts, asked) {
      try {
        extractor ??= open();
        const { dims, data } = await (await extractor)(prefixed(texts, asked, facts), { pooling, normalize: true });
        return rowsOf(dims, data);
      } catch (cause) {
        extractor = null;
        if (ThroughlineError.isInstance(cause)) throw cause;
        const why = cause instanceof Error ? cause.message : String(cause);
        throw new ThroughlineError("EMBEDDING_FAILED", `The embedder ${name} gave no vectors: ${why}`, {
          details: { embedder: name, modelPath },
          remedy: "Check that the folder holds config.json, tokenizer.json and the weights in onnx/.",
          cause,
        });
      }
    },
  };
  return { ...raw, embed: (texts, asked) => embedTexts(raw, texts, asked) };
}

async function loaded(load: () => Promise<Transformers>): Promise<Transformers> {
  try {
    return await load();
  } catch (cause) {
    // A missing dependency of the package needs another remedy.
    const isMissing = cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND";
    if (!isMissing || !cause.message.includes(`'${library}'`)) throw cause;
    throw new ThroughlineError("MODEL_SDK_MISSING", `The package ${library} is not installed.`, {
      details: { package: library },
      remedy: `Install it: npm install ${library}`,
      cause,
    });
  }
}

function rowsOf(dims: readonly number[], data: unknown): readonly Float32Array[] {
  const [count = 0, length = 0] = dims;
  if (!(data instanceof Float32Array) || dims.length !== 2 || data.length !== count * length) return [];
  return Array.from({ length: count }, (_, row) => data.slice(row * length, (row + 1) * length));
}
