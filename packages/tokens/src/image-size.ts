export interface ImageSize {
  readonly widthPx: number;
  readonly heightPx: number;
}

/** A JPEG states its size after its metadata, which may hold a preview. The search stops at this length. */
const searchedChars = 256 * 1024;

/** Reads the size from the header of a PNG, JPEG, GIF or WebP in base64. Returns null when the header is unreadable. */
export function imageSizeOf(base64: string): ImageSize | null {
  const start = base64.startsWith("data:") ? base64.indexOf(",") + 1 : 0;
  const bytes = Buffer.from(base64.slice(start, start + searchedChars), "base64");
  const size = pngSize(bytes) ?? gifSize(bytes) ?? webpSize(bytes) ?? jpegSize(bytes);
  return size !== null && size.widthPx > 0 && size.heightPx > 0 ? size : null;
}

function pngSize(bytes: Buffer): ImageSize | null {
  if (bytes.length < 24 || bytes.readUInt32BE(0) !== 0x89504e47) return null;
  return { widthPx: bytes.readUInt32BE(16), heightPx: bytes.readUInt32BE(20) };
}

function gifSize(bytes: Buffer): ImageSize | null {
  if (bytes.length < 10 || bytes.toString("latin1", 0, 4) !== "GIF8") return null;
  return { widthPx: bytes.readUInt16LE(6), heightPx: bytes.readUInt16LE(8) };
}

function webpSize(bytes: Buffer): ImageSize | null {
  if (bytes.length < 30 || bytes.toString("latin1", 8, 12) !== "WEBP") return null;
  switch (bytes.toString("latin1", 12, 16)) {
    case "VP8X":
      return { widthPx: bytes.readUIntLE(24, 3) + 1, heightPx: bytes.readUIntLE(27, 3) + 1 };
    case "VP8 ":
      return { widthPx: bytes.readUInt16LE(26) & 0x3fff, heightPx: bytes.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const bits = bytes.readUInt32LE(21);
      return { widthPx: (bits & 0x3fff) + 1, heightPx: ((bits >>> 14) & 0x3fff) + 1 };
    }
    default:
      return null;
  }
}

function jpegSize(bytes: Buffer): ImageSize | null {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return null;
  for (let at = 2; at + 9 < bytes.length && bytes[at] === 0xff; at += 2 + bytes.readUInt16BE(at + 2)) {
    const marker = bytes[at + 1] ?? 0;
    // Markers C0 to CF start a frame, except for the Huffman table, the reserved marker and arithmetic conditioning.
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (isFrame) return { widthPx: bytes.readUInt16BE(at + 7), heightPx: bytes.readUInt16BE(at + 5) };
  }
  return null;
}
