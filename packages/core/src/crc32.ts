import { builtinModule } from "./builtin-module.ts";

/** A text counts as its bytes in UTF-8; `previous` is the checksum of the bytes before them. */
type Checksum = (data: string | Uint8Array, previous?: number) => number;

let chosen: Checksum | null = null;

/**
 * Computes the CRC-32 of ZIP and PNG. The runtime's own implementation is preferred for speed, because every stored
 * record has a checksum.
 */
export function crc32(data: string | Uint8Array, previous = 0): number {
  chosen ??= (builtinModule("node:zlib") as { readonly crc32?: Checksum } | undefined)?.crc32 ?? computeCrc32;
  return chosen(data, previous);
}

export function computeCrc32(data: string | Uint8Array, previous = 0): number {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  let crc = ~previous;
  for (const byte of bytes) crc = remainders[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

const remainders: Uint32Array = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit += 1) remainder = (remainder >>> 1) ^ (remainder & 1 ? 0xedb88320 : 0);
  return remainder;
});
