import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, zstdDecompress } from "node:zlib";
import { isWithinBounds } from "./json-bounds.ts";

/** Limits the memory for one answer. A larger answer is recorded by hash and size only. */
export const mostCopied: number = 32 * 1024 * 1024;

/**
 * Sets how many bytes are hashed at once and kept as one buffer, because stream events are too small for one call each.
 */
const hashedBytes = 64 * 1024;
/** Limits the chunks that wait for hashing: a Buffer of a few bytes takes many times its size in memory. */
const mostFresh = 1024;

export class AnswerCopy {
  readonly #hash = createHash("sha256");
  #chunks: Buffer[] | null = [];
  #fresh: Buffer[] = [];
  #freshBytes = 0;
  #digest: string | null = null;
  bytes = 0;

  take(chunk: Buffer): void {
    this.bytes += chunk.length;
    this.#fresh.push(chunk);
    this.#freshBytes += chunk.length;
    // An answer above the limit is recorded by hash and size, without its text.
    if (this.bytes > mostCopied) this.#chunks = null;
    if (this.#freshBytes >= hashedBytes || this.#fresh.length >= mostFresh) this.#hashFresh();
  }

  get sha256(): string {
    if (this.#digest === null) this.#hashFresh();
    return (this.#digest ??= this.#hash.digest("hex"));
  }

  #hashFresh(): void {
    const [only] = this.#fresh;
    const piece = this.#fresh.length === 1 && only !== undefined ? only : Buffer.concat(this.#fresh);
    this.#hash.update(piece);
    this.#chunks?.push(piece);
    this.#fresh = [];
    this.#freshBytes = 0;
  }

  /**
   * Returns null when the answer exceeds the copy limit or the JSON bounds, because parsing it could exhaust the
   * memory.
   */
  async text({ "content-encoding": encoding, "content-type": type = "" }: IncomingHttpHeaders): Promise<string | null> {
    if (this.#digest === null) this.#hashFresh();
    if (this.#chunks === null) return null;
    const packed = Buffer.concat(this.#chunks);
    const bytes = await unpacked(packed, encoding);
    const form = /^(?:text\/event-stream|application\/x-ndjson)/i.test(type) ? "lines" : "document";
    return bytes === null || !(await isWithinBounds(bytes, form)) ? null : bytes.toString("utf8");
  }
}

const unpackers = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
} as const;

/** Decodes a body. The result is null when decoding fails or the decoded body would exceed `mostCopied`. */
export async function unpacked(packed: Buffer, encoding: string | undefined): Promise<Buffer | null> {
  const name = (encoding ?? "identity").trim().toLowerCase();
  if (name === "" || name === "identity") return packed;
  if (!Object.hasOwn(unpackers, name)) return null;
  try {
    return await unpackers[name as keyof typeof unpackers](packed, { maxOutputLength: mostCopied });
  } catch {
    // The provider or client sent a malformed encoding. The gateway passes the bytes on unchanged, so this is not an
    // error here.
    return null;
  }
}
