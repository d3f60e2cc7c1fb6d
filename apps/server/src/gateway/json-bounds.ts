import { setImmediate as nextTurn } from "node:timers/promises";

/** In memory a value takes many times its bytes. The requests and answers of real programs have a few thousand. */
const mostValues = 250_000;
/** Of a stream of events, or of lines of JSON. */
const mostLines = 1_000_000;
/** As many as a record of a store may have, less those that it lies in. */
const mostLevels = 180;
/** What is looked at before others get their turn. */
const stepBytes = 512 * 1024;

const [quote, backslash, openArray, openObject, closeArray, closeObject] = [0x22, 0x5c, 0x5b, 0x7b, 0x5d, 0x7d];
const [comma, lineFeed] = [0x2c, 0x0a];

/**
 * Whether a text of JSON may be parsed. It is counted in its bytes what a parser would make of it, by brackets and commas
 * outside of texts, and others get their turn meanwhile.
 *
 * @param form `lines`: each line is parsed by itself, as in a stream
 */
export async function isWithinBounds(bytes: Uint8Array, form: "document" | "lines"): Promise<boolean> {
  if (form === "document" && bytes.length < mostLevels) return true;
  const count = new JsonCount(form === "lines");
  for (let from = 0; from < bytes.length; from += stepBytes) {
    if (from > 0) await nextTurn();
    if (!count.take(bytes.subarray(from, from + stepBytes))) return false;
  }
  return true;
}

/** The same for a line that has just come. */
export function isLineWithinBounds(line: string): boolean {
  return line.length < mostValues || new JsonCount(false).take(Buffer.from(line));
}

class JsonCount {
  readonly #isLines: boolean;
  #values = 0;
  #lines = 0;
  #depth = 0;
  #isText = false;
  #isEscaped = false;

  constructor(isLines: boolean) {
    this.#isLines = isLines;
  }

  /** False once there is too much of it. */
  take(bytes: Uint8Array): boolean {
    let [values, lines, depth, isText, isEscaped] = [
      this.#values,
      this.#lines,
      this.#depth,
      this.#isText,
      this.#isEscaped,
    ];
    for (const byte of bytes) {
      // No text goes over the end of its line.
      if (byte === lineFeed && this.#isLines) {
        lines++;
        [values, depth, isText, isEscaped] = [0, 0, false, false];
      } else if (isEscaped) isEscaped = false;
      else if (isText) {
        if (byte === quote) isText = false;
        else if (byte === backslash) isEscaped = true;
      } else if (byte === quote) isText = true;
      else if (byte === comma) values++;
      else if (byte === openArray || byte === openObject) {
        depth++;
        values++;
        if (depth > mostLevels || values > mostValues) return false;
      } else if (byte === closeArray || byte === closeObject) depth--;
    }
    [this.#values, this.#lines, this.#depth, this.#isText, this.#isEscaped] = [values, lines, depth, isText, isEscaped];
    return values <= mostValues && lines <= mostLines;
  }
}
