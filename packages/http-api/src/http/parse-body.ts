import { hasErrorCode } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { type BodyLimits, excessError, JsonScan } from "@throughline/gateway/internal";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @throws {ThroughlineError} INPUT_INVALID for a text that is not UTF-8 or not JSON */
export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(decoder.decode(bytes)) as unknown;
  } catch (cause) {
    // The parser's message quotes the body, which must not appear in an answer or a log.
    const why = cause instanceof SyntaxError ? "is not JSON" : "is not UTF-8";
    throw refused("INPUT_INVALID", `The body of the request ${why}.`);
  }
}

const lineFeed = 0x0a;

function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d;
}

/**
 * Parses NDJSON: one object per line, empty lines are skipped.
 * @throws {ThroughlineError} INPUT_INVALID, with the number of the line; REQUEST_TOO_LARGE for too many lines and
 *   values
 */
export function parseLines(bytes: Buffer, limits: Pick<BodyLimits, "jsonLevels" | "jsonValues">): readonly unknown[] {
  const values: unknown[] = [];
  const scan = new JsonScan({ levels: limits.jsonLevels, values: limits.jsonValues });
  for (let from = 0, line = 1; from < bytes.length; line++) {
    const at = bytes.indexOf(lineFeed, from);
    const end = at === -1 ? bytes.length : at;
    const text = bytes.subarray(from, end);
    from = end + 1;
    const excess = scan.takeLine(text);
    if (excess === "values") throw excessError(excess, limits);
    if (text.every(isBlank)) continue;
    try {
      if (excess !== null) throw excessError(excess, limits);
      values.push(parseJson(text));
    } catch (error) {
      if (!hasErrorCode(error, "INPUT_INVALID")) throw error;
      throw refused("INPUT_INVALID", `Line ${line} of the body is not a record as JSON.`, { ...error.details, line });
    }
  }
  return values;
}
