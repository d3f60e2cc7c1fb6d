import { randomBytes } from "node:crypto";

/** Returns random bytes for keys, salts and nonces. The port for randomness has only numbers and ids. */
export function secretBytes(count: number): Buffer {
  return randomBytes(count);
}
