import { Buffer } from "node:buffer";

/** Bytes in the forms of SDKs, as base64; null for any other value. */
export function base64Of(value: unknown): string | null {
  if (!(value instanceof Uint8Array)) return null;
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
}
