import { crc32 } from "node:zlib";
import { readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { KeyedAppends, type LogImage, type LogReading } from "./log-image.ts";
import type { IndexUpdate, SessionIndex } from "./session-index.ts";
import type { LogPlace, LogStanding, RowChange } from "./session-row.ts";

/** What the index knows of an entries log: up to where, and what has changed behind that. */
export class IndexedLog {
  /** Sessions that changed since the index was last brought up to date by this log or read by it. */
  readonly changed: Set<string> = new Set();
  /** What came with those changes. */
  readonly #keyed: KeyedAppends = new KeyedAppends();
  readonly #index: SessionIndex;
  /** What the index knew then, and which index; null: nothing. */
  #known: { readonly endBytes: number; readonly generation: number } | null = null;

  constructor(index: SessionIndex) {
    this.#index = index;
  }

  /** Null: the index knows nothing of the log. */
  get endBytes(): number | null {
    return this.#known?.endBytes ?? null;
  }

  /** Whether the index is still the same one. Another one has nothing of the log. */
  get isSame(): boolean {
    return this.#known?.generation === this.#index.generation;
  }

  /** Whether the index has this log, up to where it had it or beyond. */
  isOf(identity: string): boolean {
    const { endBytes } = this;
    const known = endBytes === null ? undefined : this.ask((index) => index.log());
    return known?.identity === identity && endBytes !== null && known.endBytes >= endBytes;
  }

  /** Undefined: the index cannot answer for this log. */
  ask<T>(question: (index: SessionIndex) => T | undefined): T | undefined {
    const answer = question(this.#index);
    return this.isSame ? answer : undefined;
  }

  /** Where the index is in the open log, should it be the index of that. */
  begin(
    { files, folder }: Pick<LogReading, "files" | "folder">,
    open: { readonly handle: number; readonly identity: string },
  ): LogPlace | null {
    const known = this.#index.log();
    if (known === undefined || !isPlaceOf(files, folder.entriesLog, open, known)) return null;
    this.reach(known.endBytes);
    return known;
  }

  /** The index knows everything up to a place; null: where it stands is not known. */
  reach(endBytes: number | null): void {
    this.#known = endBytes === null ? null : { endBytes, generation: this.#index.generation };
  }

  /** `at`: where the line of the change begins. What the index knows is no news to it, however often it is read. */
  note({ rows, removed = [], keyed = [] }: RowChange, at: number): void {
    if (at < (this.endBytes ?? 0)) return;
    for (const { sessionId } of rows) this.changed.add(sessionId);
    for (const sessionId of removed) {
      this.changed.add(sessionId);
      this.#keyed.forget(sessionId);
    }
    for (const keys of keyed) this.#keyed.remember(keys);
  }

  /** The update for the index: what changed, or everything. */
  newsOf({ rows, keyed }: LogImage, isAll: boolean): Pick<IndexUpdate, "rows" | "keyed"> {
    if (isAll) return { rows: rows.values(), keyed };
    return { rows: [...this.changed].flatMap((id) => rows.get(id) ?? []), keyed: this.#keyed };
  }

  /**
   * The index is up to date to a place. Null: another index stands there, or it is busy; it gets everything next time.
   */
  taken(endBytes: number | null): void {
    this.reach(endBytes);
    if (endBytes !== null) this.forgetChanges();
  }

  forgetChanges(): void {
    this.changed.clear();
    this.#keyed.clear();
  }
}

const anchorBytes = 256;

/** The last bytes before a place in an open file. */
function anchorAt(files: Files, handle: number, endBytes: number): LogPlace["anchor"] {
  const from = Math.max(0, endBytes - anchorBytes);
  return { from, crc: crc32(readRange(files, handle, from, endBytes)) };
}

/** Where the open log stands for whoever read it up to `known`. */
export function standingOf(
  files: Files,
  path: string,
  open: { readonly handle: number; readonly identity: string },
  known: Pick<LogPlace, "endBytes" | "lineCount" | "removed">,
): LogStanding {
  const { handle, identity } = open;
  const anchor = withFileErrors(path, () => anchorAt(files, handle, known.endBytes));
  return {
    log: { identity, ...known, anchor },
    isCurrent: () => files.facts(path)?.identity === identity,
    isOfLog: (place) => isPlaceOf(files, path, open, place),
  };
}

/**
 * Whether a place is one of the open log. Its number alone is not enough: a rewritten log passes its number to a later
 * one, and a restored copy may be written into the same file.
 */
function isPlaceOf(
  files: Files,
  path: string,
  { handle, identity }: { readonly handle: number; readonly identity: string },
  { anchor, endBytes, identity: known }: LogPlace,
): boolean {
  return withFileErrors(path, () => {
    if (known !== identity || files.factsOf(handle).sizeBytes < endBytes) return false;
    return crc32(readRange(files, handle, anchor.from, endBytes)) === anchor.crc;
  });
}
