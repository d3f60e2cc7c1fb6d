import { nextUpdatedAtMs, ownEntry } from "@throughline/core/internal";
import { DeepJson } from "./json-members.ts";
import { isSame } from "./sessions-json.ts";
import { entryOf, readableEntry, withoutUndecodableChange } from "./undecodable-entry.ts";
import type { SessionRow } from "./session-row.ts";

export type Fields = Readonly<Record<string, unknown>>;

export interface KnownRow {
  readonly row: SessionRow;
  /** States when this store last changed the entry. A later line of either program changes no field. */
  readonly entryAtMs: number;
}

/** Merges another program's change of the entry into the row. When both changed a field, the later change wins. */
export function mergeForeign(
  { row, entryAtMs }: KnownRow,
  { theirs, base, nowMs }: { readonly theirs: Fields | null; readonly base: Fields | null; readonly nowMs: number },
): SessionRow {
  if (theirs === null) return base?.["sessionId"] === row.sessionId ? archivedByThem(row) : row;
  const theirId = theirs["sessionId"];
  if (theirId !== row.sessionId) {
    // OpenClaw has started a new session under the key; its transcript is adopted once it exists. If this store has
    // started one too, the later one stays.
    const isNew = typeof theirId === "string" && theirId !== base?.["sessionId"];
    const isLater =
      base?.["sessionId"] === row.sessionId || isLaterThan(row.broughtAtMs ?? row.createdAtMs, theirs, base);
    return isNew && isLater ? archivedByThem(row) : row;
  }
  const known = readableEntry(row);
  if (known === null) return row;
  const ours = fieldsOf(viewOf(row, "")) ?? {};
  const isLater = isLaterThan(entryAtMs, theirs, base);
  const entry = new Map(Object.entries(known));
  for (const field of new Set([...Object.keys(theirs), ...Object.keys(base ?? {})])) {
    const isChanged = !isSame(theirs[field], base?.[field]) && !isSame(theirs[field], ours[field]);
    const isConflict = !isSame(ours[field], base?.[field]);
    if (!isChanged || field === "sessionId" || (isConflict && !isLater)) continue;
    if (field === "sessionFile" && known.sessionFile === undefined && isNamed(theirs[field] ?? base?.[field], row))
      continue;
    if (Object.hasOwn(theirs, field)) entry.set(field, theirs[field]);
    else entry.delete(field);
  }
  const merged = ownEntry(Object.fromEntries(entry));
  const { updatedAtMs } = nextUpdatedAtMs(row.updatedAtMs, theirs["updatedAt"], nowMs);
  const isUnchanged = JSON.stringify(merged) === JSON.stringify(known);
  return isUnchanged && updatedAtMs === row.updatedAtMs
    ? row
    : { ...row, entry: merged, updatedAtMs, revision: row.revision + (isUnchanged ? 0 : 1) };
}

export function archivedByThem(row: SessionRow): SessionRow {
  const isUndecodable = readableEntry(row) === null;
  // The revision of an undecodable entry stays, because patches in the transcript still count from it.
  return { ...withoutUndecodableChange(row), isArchived: true, revision: row.revision + (isUndecodable ? 0 : 1) };
}

/**
 * Compares times. Without a common base an equal time does not count, because the file may be an earlier version that
 * this store wrote.
 */
function isLaterThan(timeMs: number, theirs: Fields, base: Fields | null): boolean {
  const updatedAt = Number(theirs["updatedAt"] ?? 0);
  return updatedAt > timeMs || (base !== null && updatedAt === timeMs);
}

/**
 * Tests whether a path names the transcript. The store adds such a path to sessions.json, and does not keep it in the
 * entry.
 */
export function isNamed(sessionFile: unknown, { fileName }: Pick<SessionRow, "fileName">): boolean {
  return typeof sessionFile === "string" && sessionFile.split(/[/\\]/).at(-1) === fileName;
}

/** @throws {ThroughlineError} CODEC_FAILED */
export function restoredRow(row: SessionRow, key: string, theirs: Fields, nowMs: number): SessionRow {
  const { updatedAtMs } = nextUpdatedAtMs(row.updatedAtMs, theirs["updatedAt"], nowMs);
  const { sessionFile, ...fields } = theirs;
  const file = sessionFile === undefined || isNamed(sessionFile, row) ? {} : { sessionFile };
  const entry = ownEntry({ ...entryOf(row), ...fields, ...file, sessionId: row.sessionId });
  return { ...row, key, entry, updatedAtMs, isArchived: false, revision: row.revision + 1 };
}

export function idIn(entry: unknown): unknown {
  return fieldsOf(entry)?.["sessionId"];
}

/**
 * Builds an entry of sessions.json. The higher activity time counts, because another process may have seen later
 * activity. `sessionFile` is used when the entry states none.
 * @throws {ThroughlineError} CODEC_FAILED
 */
export function viewOf(row: SessionRow, sessionFile: string, written: Fields | null = null): unknown {
  const writtenMs = written?.["sessionId"] === row.sessionId ? Number(written["updatedAt"]) : Number.NaN;
  const updatedAt = writtenMs > row.updatedAtMs ? writtenMs : row.updatedAtMs;
  const entry = Object.entries(entryOf(row));
  return Object.fromEntries([
    // The transcript may not exist yet. The program that creates it then chooses the path.
    ...(row.isUnflushed === true ? [] : [["sessionFile", sessionFile] as const]),
    ...entry,
    ["sessionId", row.sessionId],
    ["updatedAt", updatedAt],
  ]);
}

export function fieldsOf(value: unknown): Fields | null {
  if (value instanceof DeepJson) return null;
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}
