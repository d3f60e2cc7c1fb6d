import { setImmediate as nextTurn } from "node:timers/promises";
import { type JsonLimits, JsonScan } from "./http/json-scan.ts";

/**
 * Requests and answers of real programs have a few thousand values. The limit of levels leaves room for the 20 levels
 * that a stored record adds.
 */
const limits: JsonLimits = { levels: 180, values: 250_000 };
const mostLines = 1_000_000;
/** Sets how many bytes are scanned before the event loop runs other work. */
const stepBytes = 512 * 1024;
const lineFeed = 0x0a;

/**
 * Returns whether a JSON text is small enough to parse. The scan counts levels and values in the bytes, and it yields
 * to the event loop, because `JSON.parse` itself can neither be bounded nor interrupted.
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

/** Checks one line of a stream without yielding, because the caller is synchronous. */
export function isLineWithinBounds(line: string): boolean {
  return isShort(line) || new JsonScan(limits).take(Buffer.from(line)) === null;
}

/** A text of this length cannot nest deeper than the limit, so it needs no scan. */
function isShort({ length }: Buffer | string): boolean {
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
