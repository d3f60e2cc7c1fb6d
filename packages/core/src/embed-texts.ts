import type { Embedder, EmbedOptions } from "./ports.ts";
import { ThroughlineError } from "./throughline-error.ts";

/**
 * Returns the vectors of texts, each with norm 1. Answers come from networks and native libraries, so they are checked. A
 * wrong length, or a value that is no number, would make every later comparison wrong without an error.
 * @throws {ThroughlineError} EMBEDDING_INVALID, ABORTED, and what the embedder throws
 */
export async function embedTexts(
  embedder: Embedder,
  texts: readonly string[],
  options: EmbedOptions,
): Promise<readonly Float32Array[]> {
  const vectors: Float32Array[] = [];
  for (let from = 0; from < texts.length; from += embedder.maxBatch) {
    const some = texts.slice(from, from + embedder.maxBatch);
    const answer: unknown = await embedder.embed(some, options);
    if (options.signal?.aborted === true)
      throw new ThroughlineError("ABORTED", "The texts were not embedded.", { cause: options.signal.reason });
    if (!Array.isArray(answer) || answer.length !== some.length)
      throw invalid(embedder, `${some.length} texts were sent, and ${countOf(answer)} vectors came back`);
    vectors.push(...answer.map((vector: unknown) => withNormOne(embedder, vector)));
  }
  return vectors;
}

function withNormOne(embedder: Embedder, vector: unknown): Float32Array {
  const { dimensions } = embedder;
  if (!(vector instanceof Float32Array)) throw invalid(embedder, "a vector is no Float32Array");
  if (vector.length !== dimensions)
    throw invalid(embedder, `a vector has ${vector.length} numbers instead of ${dimensions}`);
  let squares = 0;
  for (const value of vector) squares += value * value;
  const norm = Math.sqrt(squares);
  if (!Number.isFinite(norm)) throw invalid(embedder, "a vector has a value that is no finite number");
  if (norm === 0) throw invalid(embedder, "all numbers of a vector are 0");
  return vector.map((value) => value / norm);
}

function countOf(answer: unknown): string {
  return Array.isArray(answer) ? String(answer.length) : "no";
}

function invalid({ id, dimensions }: Embedder, what: string): ThroughlineError {
  return new ThroughlineError("EMBEDDING_INVALID", `The embedder ${id} gave an answer that cannot be used: ${what}.`, {
    details: { embedder: id, dimensions },
  });
}
