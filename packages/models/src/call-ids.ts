import type { RandomSource } from "@throughline/core";

/** Results refer to calls by id, so calls to which the server assigned none need a generated id. */
export function callIds(random: RandomSource): () => string {
  return () => `call_${random.uuid().replaceAll("-", "").slice(0, 24)}`;
}
