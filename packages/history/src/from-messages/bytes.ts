import { Buffer } from "node:buffer";

/** Encodes the bytes of an SDK as base64. Returns null for any other value. */
export function base64Of(value: unknown): string | null {
  if (!(value instanceof Uint8Array)) return null;
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
}
