import { randomBytes } from "node:crypto";

/** Returns random bytes for tokens and keys. The port for randomness has only numbers and ids, which are no secrets. */
export function secretBytes(count: number): Buffer {
  return randomBytes(count);
}
