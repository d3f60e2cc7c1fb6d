import { createCipheriv, createDecipheriv } from "node:crypto";
import { secretBytes } from "./secret-bytes.ts";

export const keyBytes = 32;
export const nonceBytes = 12;
export const tagBytes = 16;

const cipherName = "aes-256-gcm";

/** Encrypts with AES-256-GCM. Returns `before`, a random nonce, the ciphertext and the tag, as one copy. */
export function seal(
  before: Uint8Array,
  { key, plain, bound }: { readonly key: Uint8Array; readonly plain: Uint8Array; readonly bound: Uint8Array },
): Buffer {
  const nonce = secretBytes(nonceBytes);
  const cipher = createCipheriv(cipherName, key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(bound);
  const parts = [before, nonce, cipher.update(plain), cipher.final()];
  return Buffer.concat([...parts, cipher.getAuthTag()]);
}

/** Decrypts nonce, ciphertext and tag. Returns null when the key, the bytes or what they are bound to differ. */
export function unseal(
  sealed: Uint8Array,
  { key, bound }: { readonly key: Uint8Array; readonly bound: Uint8Array },
): Buffer | null {
  const end = sealed.byteLength - tagBytes;
  if (end < nonceBytes) return null;
  const decipher = createDecipheriv(cipherName, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes });
  decipher.setAAD(bound);
  decipher.setAuthTag(sealed.subarray(end));
  const plain = decipher.update(sealed.subarray(nonceBytes, end));
  try {
    return Buffer.concat([plain, decipher.final()]);
  } catch {
    // Node has no code for a wrong tag. Nothing else fails here.
    return null;
  }
}
