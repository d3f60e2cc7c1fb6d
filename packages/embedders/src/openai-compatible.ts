import { type Embedder, ThroughlineError } from "@throughline/core";
import { assertKnownOptions, embedTexts, optionKinds, type OptionTable } from "@throughline/core/internal";
import { factsOf, prefixed, statedKinds } from "./known-models.ts";
import { postJson, serverUrl, vectorOf } from "./post-json.ts";

/** Names the server and the model of `openaiCompatible`. */
export interface OpenAiEmbedderOptions {
  /** States the address up to and with `/v1`, such as `https://api.openai.com/v1` or `http://127.0.0.1:8000/v1`. */
  readonly baseUrl: string;
  /** Holds the key, which is sent as a bearer token. @default none is sent */
  readonly apiKey?: string | undefined;
  /** Names the model as the server does. */
  readonly model: string;
  /**
   * States the length of the vectors. For a model that can shorten its vectors, a smaller number than the usual one is asked for.
   * @default the length of a known model; for other models it must be set
   */
  readonly dimensions?: number | undefined;
  /** Limits the tokens of one text. @default that of a known model, else 512 */
  readonly maxTokens?: number | undefined;
  /** Limits the texts of one request. @default 64 */
  readonly maxBatch?: number | undefined;
  /** Stands before each question. @default that of a known model, else none */
  readonly queryPrefix?: string | undefined;
  /** Stands before each text in which answers are looked for. @default that of a known model, else none */
  readonly passagePrefix?: string | undefined;
}

const { filledText, integer, required, secret } = optionKinds;
const table: OptionTable<OpenAiEmbedderOptions> = {
  baseUrl: required(secret(filledText)),
  apiKey: secret(filledText),
  model: required(filledText),
  maxBatch: integer({ min: 1, max: 2048 }),
  ...statedKinds,
};

/**
 * Creates an embedder over a server that speaks OpenAI's protocol: OpenAI, vLLM, LM Studio, llama.cpp and others. All texts are
 * sent to that server and to no other place.
 * @throws {ThroughlineError} CONFIG_INVALID for a wrong option or an unknown model without `dimensions`; from `embed`:
 *   EMBEDDING_FAILED, EMBEDDING_INVALID, ABORTED
 * @example
 * const embedder = openaiCompatible({ baseUrl: "http://127.0.0.1:1234/v1", model: "bge-m3" });
 */
export function openaiCompatible(options: OpenAiEmbedderOptions): Embedder {
  assertKnownOptions<OpenAiEmbedderOptions>("openaiCompatible", options, table, "options", "CONFIG_INVALID");
  const { baseUrl, apiKey = null, model, maxBatch = 64 } = options;
  const facts = factsOf(options);
  const { dimensions, maxTokens, isShortened } = facts;
  const url = serverUrl(baseUrl, "embeddings");
  const name = `openai/${model}@${dimensions}`;
  const raw: Embedder = {
    id: name,
    dimensions,
    maxBatch,
    maxTokens,
    async embed(texts, asked) {
      const input = prefixed(texts, asked, facts);
      const body = { model, input, encoding_format: "float", ...(isShortened ? { dimensions } : {}) };
      const answer = await postJson({ name, url, apiKey, body, signal: asked.signal });
      return inOrder(name, answer, texts.length);
    },
  };
  return { ...raw, embed: (texts, asked) => embedTexts(raw, texts, asked) };
}

/** The protocol numbers the vectors, and servers that work in parallel answer in another order. */
function inOrder(name: string, answer: unknown, count: number): readonly Float32Array[] {
  const { data } = (answer ?? {}) as { readonly data?: unknown };
  const vectors: (Float32Array | undefined)[] = Array.from({ length: count });
  const rows: readonly unknown[] = Array.isArray(data) ? data : [];
  for (const row of rows) {
    const { index, embedding } = (row ?? {}) as { readonly index?: unknown; readonly embedding?: unknown };
    if (typeof index === "number" && index in vectors && vectors[index] === undefined)
      vectors[index] = vectorOf(embedding);
  }
  const found = vectors.filter((vector) => vector !== undefined);
  if (found.length === count && rows.length === count) return found;
  throw new ThroughlineError(
    "EMBEDDING_INVALID",
    `The embedder ${name} gave an answer that cannot be used: ${count} texts were sent, and ${rows.length} vectors came back, ${found.length} of them with a number of their own.`,
    { details: { embedder: name, texts: count, vectors: rows.length } },
  );
}
