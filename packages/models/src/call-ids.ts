import type { RandomSource } from "@throughline/core";

/** Ids for calls that a server gives none. */
export function callIds(random: RandomSource): () => string {
  return () => `call_${random.uuid().replaceAll("-", "").slice(0, 24)}`;
}
