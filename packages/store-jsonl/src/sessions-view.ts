import { createFinding, type Finding } from "@throughline/core";
import { nextUpdatedAtMs, ownEntry } from "@throughline/core/store";
import type { AgentFolder } from "./agent-folder.ts";
import { fileError, readWhole, replaceFile } from "./file-work.ts";
import type { Files } from "./files.ts";
import type { RowChange, SessionRow } from "./session-row.ts";
import { parseObject } from "./stored-line.ts";

export interface SessionsViewOptions {
  readonly files: Files;
  readonly folder: AgentFolder;
  /** Null: while there are at most 10,000 sessions. */
  readonly isWanted: boolean | null;
  readonly onFinding: (finding: Finding) => void;
}

type Fields = Readonly<Record<string, unknown>>;

/** Writing the whole file again takes about a tenth of a second for so many sessions. */
const maxSessionsByDefault = 10_000;

/**
 * OpenClaw's sessions.json: read for what OpenClaw changed, written for OpenClaw to read. The entries log is the truth;
 * a change in the file since we wrote it is OpenClaw's and becomes a change of the session.
 */
export class SessionsView {
  readonly #options: SessionsViewOptions;
  #seenAs: string | null = null;
  #theirs: ReadonlyMap<string, unknown> = new Map();
  #base: ReadonlyMap<string, unknown> = new Map();
  #isReadable = true;

  constructor(options: SessionsViewOptions) {
    this.#options = options;
  }

  /** What the file is, in one text; empty when there is none. */
  look(): string {
    const facts = this.#options.files.facts(this.#options.folder.sessionsJson);
    return facts === null ? "" : `${facts.identity}:${facts.sizeBytes}:${facts.modifiedNs}`;
  }

  /** What the file was when it was read or written last; null: neither has happened. */
  get seenAs(): string | null {
    return this.#seenAs;
  }

  /** False after the file was read and could not be. */
  get isReadable(): boolean {
    return this.#isReadable;
  }

  /** The file's entries by key. Read again only when the file is another or changed. */
  entries(): ReadonlyMap<string, unknown> {
    const { files, folder, onFinding } = this.#options;
    const seenAs = this.look();
    if (seenAs === this.#seenAs) return this.#theirs;
    this.#seenAs = seenAs;
    const theirs = seenAs === "" ? new Map<string, unknown>() : readEntries(files, folder.sessionsJson);
    this.#isReadable = theirs !== null;
    if (theirs === null)
      onFinding(
        createFinding("INDEX_UNREADABLE", "sessions.json is not a JSON object; it is left as it is.", {
          path: folder.sessionsJson,
        }),
      );
    this.#theirs = theirs ?? new Map();
    this.#base = readEntries(files, folder.viewBase) ?? new Map();
    return this.#theirs;
  }

  /** What the other program changed since we wrote the file; null when nothing. */
  foreignChanges(rows: () => readonly SessionRow[], nowMs: number): RowChange | null {
    const theirs = this.entries();
    if (!this.#isReadable || this.#seenAs === "") return null;
    const byKey = new Map(
      rows()
        .filter((row) => !row.isArchived)
        .map((row) => [row.key, row]),
    );
    const changed: SessionRow[] = [];
    for (const key of new Set([...theirs.keys(), ...this.#base.keys()])) {
      const row = byKey.get(key);
      if (row === undefined || isSame(theirs.get(key), this.#base.get(key))) continue;
      const merged = mergeForeign(row, fieldsOf(theirs.get(key)), fieldsOf(this.#base.get(key)), nowMs);
      if (merged !== row) changed.push(merged);
    }
    return changed.length === 0 ? null : { op: "save", rows: changed };
  }

  /** Whether the file is written, for so many sessions. */
  isWanted(activeCount: () => number): boolean {
    const { isWanted } = this.#options;
    return isWanted === true || (isWanted === null && activeCount() <= maxSessionsByDefault);
  }

  /** Writes the file if it says something else. Under the entries lock, after foreign changes were taken over. */
  write(rows: readonly SessionRow[]): void {
    const { folder } = this.#options;
    const active = rows.filter((row) => !row.isArchived);
    const theirs = this.entries();
    if (!this.#isReadable || (active.length === 0 && this.#seenAs === "")) return;
    const ours = new Map<string, unknown>(active.map((row) => [row.key, viewOf(row, fieldsOf(theirs.get(row.key)))]));
    // Keys of theirs that we never wrote: sessions whose transcript does not exist yet.
    const kept = [...theirs].filter(([key]) => ours.has(key) || !this.#base.has(key));
    const wanted = new Map<string, unknown>([...kept, ...ours]);
    const text = viewText(wanted);
    if (text !== viewText(theirs) || this.#seenAs === "") this.#replace(folder.sessionsJson, text);
    if (text !== viewText(this.#base)) this.#replace(folder.viewBase, text);
    this.#seenAs = this.look();
    this.#theirs = wanted;
    this.#base = wanted;
  }

  #replace(path: string, text: string): void {
    const { files, folder } = this.#options;
    const temporary = folder.temporary(path.slice(path.lastIndexOf("/") + 1));
    try {
      files.remove(temporary);
      replaceFile(files, temporary, path, (append) => append(Buffer.from(text)));
    } catch (error) {
      throw fileError(error, path);
    }
  }
}

/** The row after what another program did to its entry. Where both changed a field the later one wins. */
function mergeForeign(row: SessionRow, theirs: Fields | null, base: Fields | null, nowMs: number): SessionRow {
  if (theirs === null)
    return base?.["sessionId"] === row.sessionId ? { ...row, isArchived: true, revision: row.revision + 1 } : row;
  const theirId = theirs["sessionId"];
  if (theirId !== row.sessionId) {
    // OpenClaw has begun a new session under the key; its transcript is taken over when there is one.
    return typeof theirId === "string" && base?.["sessionId"] === row.sessionId
      ? { ...row, isArchived: true, revision: row.revision + 1 }
      : row;
  }
  const ours = fieldsOf(viewOf(row)) ?? {};
  const isLater = Number(theirs["updatedAt"] ?? 0) >= row.updatedAtMs;
  const entry = new Map(Object.entries(row.entry));
  for (const field of new Set([...Object.keys(theirs), ...Object.keys(base ?? {})])) {
    const isChanged = !isSame(theirs[field], base?.[field]) && !isSame(theirs[field], ours[field]);
    const isConflict = !isSame(ours[field], base?.[field]);
    if (!isChanged || field === "sessionId" || (isConflict && !isLater)) continue;
    if (Object.hasOwn(theirs, field)) entry.set(field, theirs[field]);
    else entry.delete(field);
  }
  const merged = ownEntry(Object.fromEntries(entry));
  const { updatedAtMs } = nextUpdatedAtMs(row.updatedAtMs, theirs["updatedAt"], nowMs);
  const isUnchanged = JSON.stringify(merged) === JSON.stringify(row.entry);
  return isUnchanged && updatedAtMs === row.updatedAtMs
    ? row
    : { ...row, entry: merged, updatedAtMs, revision: row.revision + (isUnchanged ? 0 : 1) };
}

/** Another process of ours may know of later activity than this one has looked at. */
function viewOf(row: SessionRow, written: Fields | null = null): unknown {
  const writtenMs = written?.["sessionId"] === row.sessionId ? Number(written["updatedAt"]) : Number.NaN;
  const updatedAt = writtenMs > row.updatedAtMs ? writtenMs : row.updatedAtMs;
  return Object.fromEntries([...Object.entries(row.entry), ["sessionId", row.sessionId], ["updatedAt", updatedAt]]);
}

/** By own properties: a key like `__proto__` is a key like any other. */
function viewText(entries: ReadonlyMap<string, unknown>): string {
  return `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`;
}

function readEntries(files: Files, path: string): ReadonlyMap<string, unknown> | null {
  const bytes = readWhole(files, path);
  const fields = bytes === null ? null : parseObject(Buffer.from(bytes).toString());
  return fields === null ? null : new Map(Object.entries(fields));
}

function fieldsOf(value: unknown): Fields | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
