import { randomBytes } from "node:crypto";

/** Returns bytes that nobody can guess, for tokens and keys. The port for randomness has numbers and ids only. */
export function secretBytes(count: number): Buffer {
  return randomBytes(count);
}
