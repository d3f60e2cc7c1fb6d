import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, zstdDecompress } from "node:zlib";
import { isWithinBounds } from "./json-bounds.ts";

/** The most of an answer that is kept in memory until it has ended. */
export const mostCopied: number = 32 * 1024 * 1024;

/** As many bytes of an answer are hashed at once, and kept as one piece. */
const hashedBytes = 64 * 1024;
/** As many chunks at most: one of a few bytes takes many times as much in memory. */
const mostFresh = 1024;

/** What the recorder keeps of an answer while it passes. */
export class AnswerCopy {
  readonly #hash = createHash("sha256");
  #chunks: Buffer[] | null = [];
  /** Chunks that are not hashed yet: an event of a stream is too small to be hashed, and kept, alone. */
  #fresh: Buffer[] = [];
  #freshBytes = 0;
  #digest: string | null = null;
  bytes = 0;

  take(chunk: Buffer): void {
    this.bytes += chunk.length;
    this.#fresh.push(chunk);
    this.#freshBytes += chunk.length;
    // Hash and size are kept of what is larger, and no reply.
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

  /** The text of the answer, unpacked; null where there was too much of it, or more in it than is parsed. */
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

/** A body without its encoding; null for one that cannot be unpacked, or becomes too large by it. */
export async function unpacked(packed: Buffer, encoding: string | undefined): Promise<Buffer | null> {
  const name = (encoding ?? "identity").trim().toLowerCase();
  if (name === "" || name === "identity") return packed;
  if (!Object.hasOwn(unpackers, name)) return null;
  try {
    return await unpackers[name as keyof typeof unpackers](packed, { maxOutputLength: mostCopied });
  } catch {
    // What another program packed wrongly is passed on as it is.
    return null;
  }
}
