import type { Embedder } from "@throughline/core";
import { assertKnownOptions, embedTexts, optionKinds, type OptionTable } from "@throughline/core/internal";
import { factsOf, prefixed, statedKinds } from "./known-models.ts";
import { postJson, serverUrl, vectorOf } from "./post-json.ts";

/** Names the server and the model of `ollamaEmbedder`. */
export interface OllamaEmbedderOptions {
  /** States the address of the server. @default "http://127.0.0.1:11434" */
  readonly baseUrl?: string | undefined;
  /** Names the model as Ollama does, such as `nomic-embed-text`. The server must have it. */
  readonly model: string;
  /** States the length of the vectors. @default the length of a known model; for other models it must be set */
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
const table: OptionTable<OllamaEmbedderOptions> = {
  baseUrl: secret(filledText),
  model: required(filledText),
  maxBatch: integer({ min: 1, max: 2048 }),
  ...statedKinds,
};

/**
 * Creates an embedder over an Ollama server. A text that is too long for the model is an error, because Ollama would otherwise cut
 * it without notice.
 * @throws {ThroughlineError} CONFIG_INVALID for a wrong option or an unknown model without `dimensions`; from `embed`:
 *   EMBEDDING_FAILED, EMBEDDING_INVALID, ABORTED
 * @example
 * const embedder = ollamaEmbedder({ model: "nomic-embed-text" });
 */
export function ollamaEmbedder(options: OllamaEmbedderOptions): Embedder {
  assertKnownOptions<OllamaEmbedderOptions>("ollamaEmbedder", options, table, "options", "CONFIG_INVALID");
  const { baseUrl = "http://127.0.0.1:11434", model, maxBatch = 64 } = options;
  const facts = factsOf(options);
  const { dimensions, maxTokens } = facts;
  const url = serverUrl(baseUrl, "api/embed");
  const name = `ollama/${model}@${dimensions}`;
  const raw: Embedder = {
    id: name,
    dimensions,
    maxBatch,
    maxTokens,
    async embed(texts, asked) {
      const body = { model, input: prefixed(texts, asked, facts), truncate: false };
      const answer = await postJson({ name, url, apiKey: null, body, signal: asked.signal });
      const { embeddings } = (answer ?? {}) as { readonly embeddings?: unknown };
      return Array.isArray(embeddings) ? embeddings.map(vectorOf) : [];
    },
  };
  return { ...raw, embed: (texts, asked) => embedTexts(raw, texts, asked) };
}
