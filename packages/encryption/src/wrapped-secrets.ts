import { keyBytes, nonceBytes, seal, tagBytes, unseal } from "./sealed-bytes.ts";

/** A wrapped secret: the generation of the master key (4 bytes), nonce, ciphertext, tag. Each has the same length. */
const generationBytes = 4;
export const wrappedBytes: number = generationBytes + nonceBytes + keyBytes + tagBytes;

/** Names what a wrapped secret is, so that none passes for another. */
export type SecretName = readonly (string | number)[];

/** Returns a secret of 32 bytes, encrypted under a master key or the key of a slot. */
export function wrapSecret(secret: Uint8Array, key: Uint8Array, generation: number, name: SecretName): Buffer {
  const before = Buffer.alloc(generationBytes);
  before.writeUInt32BE(generation);
  return seal(before, { key, plain: secret, bound: boundTo(generation, name) });
}

/** States the generation of the key that wrapped the secret; 0 when the secret was destroyed. */
export function generationOf(wrapped: Uint8Array): number {
  return wrapped.byteLength === wrappedBytes ? Buffer.from(wrapped).readUInt32BE(0) : 0;
}

/** Returns the secret; null when the key is another one, or the bytes were changed or stand in another place. */
export function unwrapSecret(wrapped: Uint8Array, key: Uint8Array, name: SecretName): Buffer | null {
  if (wrapped.byteLength !== wrappedBytes) return null;
  return unseal(wrapped.subarray(generationBytes), { key, bound: boundTo(generationOf(wrapped), name) });
}

function boundTo(generation: number, name: SecretName): Buffer {
  return Buffer.from(JSON.stringify(["throughline keyring 1", generation, ...name]));
}
