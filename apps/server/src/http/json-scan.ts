/** What JSON may hold, counted before anything is parsed: in memory a value takes many times its bytes. */
export interface JsonLimits {
  readonly levels: number;
  readonly values: number;
}

const [quote, backslash, openArray, openObject, closeArray, closeObject] = [0x22, 0x5c, 0x5b, 0x7b, 0x5d, 0x7d];
const comma = 0x2c;
/** A text that goes on for this long is passed over by a search for its end: most bytes of a request stand in such texts. */
const shortText = 16;

/** Counts the levels and values of JSON that comes in pieces, by the brackets and commas outside of texts. */
export class JsonScan {
  readonly #limits: JsonLimits;
  #depth = 0;
  #values = 0;
  #isText = false;
  #isEscaped = false;

  constructor(limits: JsonLimits) {
    this.#limits = limits;
  }

  /** What there is too much of with this piece; null when it may pass. Stops at the first byte that is too deep. */
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

  /** The same for a line that is JSON of its own. The line counts as well, whatever stands in it. */
  takeLine(bytes: Buffer): keyof JsonLimits | null {
    [this.#depth, this.#isText, this.#isEscaped] = [0, false, false];
    this.#values++;
    return this.take(bytes);
  }
}

/** How many backslashes stand in a row before a place. The byte that the search began at is none. */
function slashesBefore(bytes: Buffer, end: number): number {
  let slashes = 0;
  while (bytes[end - 1 - slashes] === backslash) slashes++;
  return slashes;
}
