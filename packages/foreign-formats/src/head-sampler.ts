import type { FormatSample } from "./foreign-format.ts";

/** Gathers the beginning of a file for telling its format. */
export interface HeadSampler {
  /** Takes the next bytes of the file. False: the sample is full, and no more are needed. */
  push(chunk: Uint8Array): boolean;
  /**
   * The sample so far.
   * @param path as far as it is known, with `/`
   * @param isEnd whether the file ended behind the last chunk
   */
  sample(path: string, isEnd: boolean): FormatSample;
}

const mostBytes = 64 * 1024;
/** The bytes of a JSON text that are kept: nothing that identifies a format is longer. */
const mostOfText = 1024;
/** A document of at most this size is read, and no line of a session is longer. */
const mostScanned = 64 * 1024 * 1024;

const [quote, backslash, lineFeed] = [0x22, 0x5c, 0x0a] as const;

/**
 * Creates a sampler that shortens long JSON texts, so that a first line or element of any size fits: an image, a whole file,
 * the instructions of a program.
 */
export function createHeadSampler(): HeadSampler {
  return new ShorteningSampler();
}

class ShorteningSampler implements HeadSampler {
  readonly #bytes = new Uint8Array(mostBytes);
  #length = 0;
  #scanned = 0;
  /** How much of the text that is open was kept; null outside of texts. */
  #inText: number | null = null;
  /** Whether the last byte escapes the next one. */
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
      // No JSON text holds a line feed: such a quotation mark opened none.
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

  /** An escape that was cut would break the text. */
  #dropHalfEscape(): void {
    const longest = "\\u0000".length;
    const from = Math.max(0, this.#length - longest);
    const at = this.#bytes.subarray(from, this.#length).indexOf(backslash);
    if (at < 0) return;
    this.#length = from + at;
    // A backslash may be the second half of an escape.
    while (this.#length > 0 && this.#bytes[this.#length - 1] === backslash) this.#length -= 1;
  }

  /** The end of the open text: the place of its quotation mark, or the end of the chunk. */
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

/** The place of a byte; the length where it is nowhere. */
function placeOf(bytes: Uint8Array, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at < 0 ? bytes.length : at;
}
