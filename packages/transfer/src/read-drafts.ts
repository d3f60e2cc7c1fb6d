import type { Readable } from "node:stream";
import {
  causeText,
  abortedBefore,
  defaultStoreLimits,
  findRecordProblem,
  prepareDrafts,
  systemClock,
  systemRecordIds,
} from "@throughline/core/internal";
import { hasErrorCode, ThroughlineError, type RecordDraft } from "@throughline/core";
import { createLineSplitter, decodeLine } from "@throughline/openclaw-format";
import type { SplitLine } from "@throughline/openclaw-format/internal";

/** Describes one draft of the input and the line that holds it. */
export interface DraftLine {
  /** Holds the line number, from 1. */
  readonly line: number;
  /** Holds the record to append, checked against the record format. */
  readonly draft: RecordDraft;
  /** Holds the length of the line in bytes, without its line feed. */
  readonly sizeBytes: number;
}

/** Equals the largest record of every store. */
const maxLineBytes = 16 * 1024 * 1024;
/** Deeper nesting would overflow the stack of recursive readers; no conversation needs it. */
const maxDepth = 200;

/**
 * Reads drafts, one JSON object a line, while the input arrives. Only a line feed ends a line; blank lines are skipped;
 * a byte order mark before the first line is allowed.
 * @throws {ThroughlineError} INPUT_INVALID with `details.line` for the first line that is not a draft
 */
export async function* readDrafts(input: Readable, signal: AbortSignal): AsyncGenerator<DraftLine, void, void> {
  const splitter = createLineSplitter({ maxLineBytes: maxLineBytes + 1 });
  let line = 0;
  let endOffset = 0;
  let readBytes = 0;
  const read = (split: SplitLine): DraftLine | null => {
    line += 1;
    endOffset = split.byteOffset + split.sizeBytes + 1;
    return readDraft(split, line);
  };
  for await (const chunk of abortable(input, signal)) {
    readBytes += chunk.length;
    for (const split of splitter.push(chunk)) {
      const draft = read(split);
      if (draft !== null) yield draft;
    }
    // A line without an end would otherwise fill the memory.
    if (readBytes - endOffset > maxLineBytes) throw tooLong(line + 1);
  }
  const rest = splitter.end();
  const draft = rest === null ? null : read(rest);
  if (draft !== null) yield draft;
}

/**
 * Yields chunks until the input ends or the signal aborts. Destroys the input, so that it does not keep the process
 * alive.
 */
async function* abortable(input: Readable, signal: AbortSignal): AsyncGenerator<Buffer, void, void> {
  const stop = (): void => void input.destroy();
  signal.addEventListener("abort", stop, { once: true });
  try {
    if (!signal.aborted) yield* input as AsyncIterable<Buffer>;
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener("abort", stop);
    input.destroy();
  }
  if (signal.aborted) throw abortedBefore("all lines were read", signal);
}

function readDraft(split: SplitLine, line: number): DraftLine | null {
  if (split.sizeBytes > maxLineBytes) throw tooLong(line);
  const hasMark = line === 1 && split.bytes[0] === 0xef && split.bytes[1] === 0xbb && split.bytes[2] === 0xbf;
  const text = decodeLine(hasMark ? split.bytes.subarray(3) : split.bytes);
  if (typeof text !== "string") throw invalid(line, "it is not UTF-8");
  if (text.trim() === "") return null;
  if (isTooDeep(text)) throw invalid(line, `it is nested more than ${maxDepth} deep`);
  return { line, draft: checkDraft(parseJson(text, line), line), sizeBytes: split.sizeBytes };
}

function parseJson(text: string, line: number): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw invalid(line, `it is not JSON: ${causeText(cause)}`, {}, cause);
  }
}

/** Applies the stores' rules for a draft, so that an invalid draft is refused with its line number. */
function checkDraft(value: unknown, line: number): RecordDraft {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid(line, "it is not an object");
  // The store fills in these fields when they are absent, but the check requires them.
  const problem = findRecordProblem({ id: "", parentId: null, timestamp: "", ...value });
  if (problem !== null) throw invalid(line, `${problem.path} ${problem.message}`, { path: problem.path });
  const draft = value as RecordDraft;
  try {
    prepareDrafts([draft], { ids: systemRecordIds, clock: systemClock, limits: defaultStoreLimits });
  } catch (cause) {
    if (!hasErrorCode(cause, "RECORD_INVALID")) throw cause;
    throw invalid(line, cause.message.replace(/^Draft 0 is not a valid record: |\.$/g, ""), {}, cause);
  }
  return draft;
}

/** Counts brackets outside of strings before a recursive parser sees the text. */
function isTooDeep(text: string): boolean {
  let depth = 0;
  let isString = false;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (isString) {
      if (unit === 0x5c) index += 1;
      else if (unit === 0x22) isString = false;
    } else if (unit === 0x22) isString = true;
    else if (unit === 0x7b || unit === 0x5b) {
      depth += 1;
      if (depth > maxDepth) return true;
    } else if (unit === 0x7d || unit === 0x5d) depth -= 1;
  }
  return false;
}

function tooLong(line: number): ThroughlineError {
  return invalid(line, `it is longer than ${maxLineBytes} bytes`);
}

function invalid(line: number, why: string, details: object = {}, cause?: unknown): ThroughlineError {
  return new ThroughlineError("INPUT_INVALID", `Line ${line} is not a record draft: ${why}.`, {
    outcome: "not-applied",
    details: { line, ...details },
    cause,
  });
}
