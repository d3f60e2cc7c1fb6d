/** Limits JSON before it is parsed, because a parsed value takes many times its bytes. */
export interface JsonLimits {
  readonly levels: number;
  readonly values: number;
}

const [quote, backslash, openArray, openObject, closeArray, closeObject] = [0x22, 0x5c, 0x5b, 0x7b, 0x5d, 0x7d];
const comma = 0x2c;
/**
 * After this many bytes of a string, `indexOf` searches its end. Most bytes of a request are in long strings, and the
 * native search is faster.
 */
const shortText = 16;

/** Counts brackets and commas outside of strings, because they delimit the values. */
export class JsonScan {
  readonly #limits: JsonLimits;
  #depth = 0;
  #values = 0;
  #isText = false;
  #isEscaped = false;

  constructor(limits: JsonLimits) {
    this.#limits = limits;
  }

  /** Returns the limit that this chunk exceeds, or null. The scan stops at the first byte that is nested too deeply. */
  take(bytes: Buffer): keyof JsonLimits | null {
    const { levels } = this.#limits;
    let [depth, values, isText, isEscaped] = [this.#depth, this.#values, this.#isText, this.#isEscaped];
    let far = shortText;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at];
      if (isEscaped) isEscaped = false;
      else if (isText) {
        if (byte === quote) isText = false;
        else if (byte === backslash) isEscaped = true;
        else if (at >= far) {
          const next = bytes.indexOf(quote, at);
          const end = next === -1 ? bytes.length : next;
          const isEven = slashesBefore(bytes, end) % 2 === 0;
          if (next === -1) isEscaped = !isEven;
          else if (isEven) isText = false;
          at = end;
          far = end + shortText;
        }
      } else if (byte === quote) {
        isText = true;
        far = at + shortText;
      } else if (byte === comma) values++;
      else if (byte === openArray || byte === openObject) {
        depth++;
        values++;
        if (depth > levels) return "levels";
      } else if (byte === closeArray || byte === closeObject) depth--;
    }
    [this.#depth, this.#values, this.#isText, this.#isEscaped] = [depth, values, isText, isEscaped];
    return values > this.#limits.values ? "values" : null;
  }

  /** Scans one line of NDJSON. The line itself counts as a value, so that many empty lines also reach the limit. */
  takeLine(bytes: Buffer): keyof JsonLimits | null {
    [this.#depth, this.#isText, this.#isEscaped] = [0, false, false];
    this.#values++;
    return this.take(bytes);
  }
}

/**
 * Counts the backslashes in a row before `end`, to decide whether the quote is escaped. The search starts at a byte
 * that is no backslash.
 */
function slashesBefore(bytes: Buffer, end: number): number {
  let slashes = 0;
  while (bytes[end - 1 - slashes] === backslash) slashes++;
  return slashes;
}
