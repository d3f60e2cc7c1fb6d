import { hasErrorCode } from "@throughline/core";
import { isFields, parsedFields } from "@throughline/core/internal";
import { createLineSplitter } from "@throughline/openclaw-format";
import { openSource } from "./node/source-files.ts";
import { createScratchMap, type ScratchMap } from "./scratch-map.ts";

/**
 * Describes a session as the entries log of a JSON Lines store records it; `docs/formats/records.md` describes the log.
 */
export interface OwnEntry {
  readonly sessionId: string;
  readonly key: string;
  readonly fileName: string;
  readonly isArchived: boolean;
  readonly revision: number;
  readonly entry: Readonly<Record<string, unknown>>;
  /** Holds the head that an append without records set, and the seq it followed. */
  readonly savedHead: { readonly lastSeq: number; readonly headId: string | null } | null;
}

export interface OwnEntries extends Disposable {
  /**
   * Yields the newest row of every session. Archived sessions come first, because their keys may belong to active ones
   * now.
   */
  rows(): Iterable<OwnEntry>;
  readonly unreadableLines: number;
  /** True if an entry is encoded, which only its store can decode. */
  readonly isCoded: boolean;
}

/** Throughline writes no longer lines. */
const maxLineBytes = 64 * 1024 * 1024;

/** @throws {ThroughlineError} FILE_UNREADABLE, PATH_UNSAFE; a missing log counts as empty */
export async function readOwnEntries(path: string): Promise<OwnEntries> {
  const rows = createScratchMap();
  try {
    const facts = await readLog(path, rows);
    return {
      ...facts,
      *rows() {
        for (const isArchived of [true, false]) {
          for (const [, text] of rows.entries()) {
            const row = JSON.parse(text) as OwnEntry;
            if (row.isArchived === isArchived) yield row;
          }
        }
      },
      [Symbol.dispose]: () => rows[Symbol.dispose](),
    };
  } catch (error) {
    rows[Symbol.dispose]();
    throw error;
  }
}

async function readLog(path: string, rows: ScratchMap): Promise<Pick<OwnEntries, "unreadableLines" | "isCoded">> {
  let unreadableLines = 0;
  let isCoded = false;
  for await (const line of linesOf(path)) {
    if (line === "") continue;
    const change = parsedFields(line);
    if (change === null || change["v"] !== 1) {
      unreadableLines++;
      continue;
    }
    const also = Array.isArray(change["also"]) ? (change["also"] as unknown[]) : [];
    for (const value of [...(change["sessionId"] === undefined ? [] : [change]), ...also]) {
      isCoded ||= isFields(value) && value["entryEnc"] !== undefined;
      const row = rowOf(value);
      if (row !== null) rows.set(row.sessionId, JSON.stringify(row));
    }
    for (const sessionId of Array.isArray(change["removed"]) ? (change["removed"] as unknown[]) : [])
      rows.delete(String(sessionId));
  }
  return { unreadableLines, isCoded };
}

async function* linesOf(path: string): AsyncGenerator<string> {
  const source = await openSource(path).catch((error: unknown) => nullOfMissing(error));
  if (source === null) return;
  try {
    const splitter = createLineSplitter({ maxLineBytes });
    for await (const chunk of source.chunks())
      for (const { bytes } of splitter.push(chunk)) yield Buffer.from(bytes).toString("utf8");
    const last = splitter.end();
    if (last !== null) yield Buffer.from(last.bytes).toString("utf8");
  } finally {
    await source.close();
  }
}

function nullOfMissing(error: unknown): null {
  if (hasErrorCode(error, "FILE_NOT_FOUND")) return null;
  throw error;
}

function rowOf(value: unknown): OwnEntry | null {
  if (!isFields(value)) return null;
  const { sessionId, key, fileName, isArchived, revision, entry } = value;
  if (typeof sessionId !== "string" || typeof key !== "string" || typeof fileName !== "string" || !isFields(entry))
    return null;
  return {
    sessionId,
    key,
    fileName,
    isArchived: isArchived === true,
    revision: typeof revision === "number" ? revision : 0,
    entry,
    savedHead: savedHeadOf(value["savedHead"]),
  };
}

function savedHeadOf(value: unknown): OwnEntry["savedHead"] {
  if (!isFields(value) || typeof value["lastSeq"] !== "number") return null;
  const headId = value["headId"];
  return typeof headId === "string" || headId === null ? { lastSeq: value["lastSeq"], headId } : null;
}
