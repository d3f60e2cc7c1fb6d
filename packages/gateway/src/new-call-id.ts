import type { RandomSource } from "@throughline/core";

/** Creates the id of a call's record: 120 random bits in 20 characters. */
export function newCallId({ uint32 }: RandomSource): string {
  const bytes = Buffer.from(Uint32Array.from({ length: 4 }, uint32).buffer);
  return `call-${bytes.toString("base64url", 0, 15)}`;
}
