import { Buffer } from "node:buffer";

/** Bytes as SDKs hand them over, as base64; null for what is no bytes. */
export function base64Of(value: unknown): string | null {
  if (!(value instanceof Uint8Array)) return null;
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
}
