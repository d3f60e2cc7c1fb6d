import type { FormatSample } from "./foreign-format.ts";

/** Collects the beginning of a file, to detect its format. */
export interface HeadSampler {
  /** Adds the next bytes of the file. Returns false when the sample is full and needs no more bytes. */
  push(chunk: Uint8Array): boolean;
  /**
   * Returns the sample so far.
   * @param path the path with `/` as separator, as far as it is known
   * @param isEnd whether the file ended after the last chunk
   */
  sample(path: string, isEnd: boolean): FormatSample;
}

const mostBytes = 64 * 1024;
/** A longer JSON text is cut to this many bytes, because no text that identifies a format is longer. */
const mostOfText = 1024;
/** The scan stops here. No larger document is imported, and no line of a session is longer. */
const mostScanned = 64 * 1024 * 1024;

const [quote, backslash, lineFeed] = [0x22, 0x5c, 0x0a] as const;

/**
 * Creates a sampler that shortens long JSON texts, so that a first line or element of any size fits. Such texts are an
 * image, a whole file, or the instructions of a program.
 */
export function createHeadSampler(): HeadSampler {
  return new ShorteningSampler();
}

class ShorteningSampler implements HeadSampler {
  readonly #bytes = new Uint8Array(mostBytes);
  #length = 0;
  #scanned = 0;
  /** The count covers the bytes kept of the open text; null outside of texts. */
  #inText: number | null = null;
  #isEscaped = false;

  push(chunk: Uint8Array): boolean {
    let lineEnd = -1;
    for (let at = 0; at < chunk.length && this.#hasRoom;) {
      if (this.#inText === null) {
        const end = placeOf(chunk, quote, at) + 1;
        this.#keep(chunk.subarray(at, end));
        if (end <= chunk.length) this.#inText = 0;
        at = end;
        continue;
      }
      // No JSON text holds a line feed. If one follows, the quotation mark opened no text.
      if (lineEnd < at) lineEnd = placeOf(chunk, lineFeed, at);
      const end = Math.min(this.#endOfText(chunk, at), lineEnd);
      this.#keepOfText(chunk.subarray(at, end));
      if (end < chunk.length) {
        this.#keep(chunk.subarray(end, end + 1));
        this.#inText = null;
        this.#isEscaped = false;
      }
      at = end + 1;
    }
    this.#scanned += chunk.length;
    return this.#hasRoom && this.#scanned < mostScanned;
  }

  sample(path: string, isEnd: boolean): FormatSample {
    return { path, head: this.#bytes.slice(0, this.#length), isWhole: isEnd && this.#hasRoom };
  }

  get #hasRoom(): boolean {
    return this.#length < mostBytes;
  }

  #keep(bytes: Uint8Array): void {
    const fitting = bytes.subarray(0, mostBytes - this.#length);
    this.#bytes.set(fitting, this.#length);
    this.#length += fitting.length;
  }

  #keepOfText(bytes: Uint8Array): void {
    const kept = this.#inText ?? 0;
    if (kept >= mostOfText) return;
    this.#keep(bytes.subarray(0, mostOfText - kept));
    this.#inText = kept + bytes.length;
    if (this.#inText > mostOfText) this.#dropHalfEscape();
  }

  /** A cut escape would make the JSON text invalid. */
  #dropHalfEscape(): void {
    const longest = "\\u0000".length;
    const from = Math.max(0, this.#length - longest);
    const at = this.#bytes.subarray(from, this.#length).indexOf(backslash);
    if (at < 0) return;
    this.#length = from + at;
    // A backslash may be the second half of an escape, so all adjacent backslashes are removed.
    while (this.#length > 0 && this.#bytes[this.#length - 1] === backslash) this.#length -= 1;
  }

  /** The text ends at its closing quotation mark, or continues past the end of the chunk. */
  #endOfText(chunk: Uint8Array, from: number): number {
    for (let search = from; ;) {
      const end = placeOf(chunk, quote, search);
      let first = end;
      while (first > from && chunk[first - 1] === backslash) first -= 1;
      const isCarried = first === from && this.#isEscaped;
      const isEscaped = (end - first + (isCarried ? 1 : 0)) % 2 === 1;
      if (end === chunk.length) {
        this.#isEscaped = isEscaped;
        return end;
      }
      if (!isEscaped) return end;
      search = end + 1;
    }
  }
}

/** The result is the length when the byte is absent, so that callers need no special case. */
function placeOf(bytes: Uint8Array, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at < 0 ? bytes.length : at;
}
