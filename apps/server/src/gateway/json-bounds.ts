import { setImmediate as nextTurn } from "node:timers/promises";
import { type JsonLimits, JsonScan } from "../http/json-scan.ts";

/** The requests and answers of real programs have a few thousand values. A record of a store lies in 20 levels of its own. */
const limits: JsonLimits = { levels: 180, values: 250_000 };
/** Of a stream of events, or of lines of JSON. */
const mostLines = 1_000_000;
/** What is looked at before others get their turn. */
const stepBytes = 512 * 1024;
const lineFeed = 0x0a;

/**
 * Whether a text of JSON may be parsed. It is counted in its bytes what a parser would make of it, and others get their turn
 * meanwhile.
 *
 * @param form `lines`: each line is parsed by itself, as in a stream
 */
export async function isWithinBounds(bytes: Buffer, form: "document" | "lines"): Promise<boolean> {
  if (form === "document") return isTextWithinBounds(bytes);
  let sinceTurn = 0;
  for (let from = 0, lines = 0; from < bytes.length; lines++) {
    const next = bytes.indexOf(lineFeed, from);
    const end = next === -1 ? bytes.length : next;
    const line = bytes.subarray(from, end);
    if (lines > mostLines || (!isShort(line) && !(await isTextWithinBounds(line)))) return false;
    sinceTurn += end - from + 1;
    from = end + 1;
    if (sinceTurn < stepBytes) continue;
    sinceTurn = 0;
    await nextTurn();
  }
  return true;
}

/** The same for a line that has just come. */
export function isLineWithinBounds(line: string): boolean {
  return line.length < limits.values || new JsonScan(limits).take(Buffer.from(line)) === null;
}

/** So few bytes have no more levels than that. */
function isShort({ length }: Buffer): boolean {
  return length <= limits.levels;
}

async function isTextWithinBounds(bytes: Buffer): Promise<boolean> {
  if (isShort(bytes)) return true;
  const scan = new JsonScan(limits);
  for (let from = 0; from < bytes.length; from += stepBytes) {
    if (from > 0) await nextTurn();
    if (scan.take(bytes.subarray(from, from + stepBytes)) !== null) return false;
  }
  return true;
}
