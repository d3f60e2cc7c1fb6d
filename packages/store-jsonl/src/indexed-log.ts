import { crc32 } from "node:zlib";
import { readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { KeyedAppends, type LogImage, type LogReading } from "./log-image.ts";
import type { IndexUpdate, SessionIndex } from "./session-index.ts";
import type { LogPlace, LogStanding, RowChange } from "./session-row.ts";

export class IndexedLog {
  readonly changed: Set<string> = new Set();
  readonly #keyed: KeyedAppends = new KeyedAppends();
  readonly #index: SessionIndex;
  /**
   * Holds the covered position, and the generation of the index that it is valid for. Null means that the index covers
   * no part of the log.
   */
  #known: { readonly endBytes: number; readonly generation: number } | null = null;

  constructor(index: SessionIndex) {
    this.#index = index;
  }

  /** Is null when the index covers no part of the log. */
  get endBytes(): number | null {
    return this.#known?.endBytes ?? null;
  }

  /** Is true while the index file is the same. A new one covers nothing of the log. */
  get isSame(): boolean {
    return this.#known?.generation === this.#index.generation;
  }

  /** Tests whether the index belongs to this log and covers at least the same part as before. */
  isOf(identity: string): boolean {
    const { endBytes } = this;
    const known = endBytes === null ? undefined : this.#index.log();
    return this.isSame && known?.identity === identity && endBytes !== null && known.endBytes >= endBytes;
  }

  /**
   * Finds how far the index covers the open log, of which the part up to `readBytes` was read already. An index that
   * covers less than that part gets every row with the next update, because earlier changes were not recorded for it.
   */
  match(
    { files, folder }: Pick<LogReading, "files" | "folder">,
    open: { readonly handle: number; readonly identity: string },
    readBytes: number,
  ): void {
    const known = this.#index.log();
    const isCovered = known !== undefined && known.endBytes >= readBytes;
    if (!isCovered || !isPlaceOf(files, folder.entriesLog, open, known)) return;
    this.reach(known.endBytes);
    this.forgetChanges();
  }

  reach(endBytes: number | null): void {
    this.#known = endBytes === null ? null : { endBytes, generation: this.#index.generation };
  }

  /**
   * Records a change whose line starts at `at`. Changes that the index covers are skipped, because they may be read
   * repeatedly.
   */
  note({ rows, removed = [], keyed = [] }: RowChange, at: number): void {
    if (at < (this.endBytes ?? 0)) return;
    for (const { sessionId } of rows) this.changed.add(sessionId);
    for (const sessionId of removed) {
      this.changed.add(sessionId);
      this.#keyed.forget(sessionId);
    }
    for (const keys of keyed) this.#keyed.remember(keys);
  }

  newsOf({ rows, keyed }: LogImage, isAll: boolean): Pick<IndexUpdate, "rows" | "keyed"> {
    if (isAll) return { rows: rows.values(), keyed };
    return { rows: [...this.changed].flatMap((id) => rows.get(id) ?? []), keyed: this.#keyed };
  }

  /** Records that the index is up to date. Null means that it was replaced or busy, and gets everything next time. */
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

/** Fingerprints the bytes before a position, which recognize the log in spite of a reused inode. */
function anchorAt(files: Files, handle: number, endBytes: number): LogPlace["anchor"] {
  const from = Math.max(0, endBytes - anchorBytes);
  return { from, crc: crc32(readRange(files, handle, from, endBytes)) };
}

/** Describes the open log for an index update, up to the position `known.endBytes` that the caller has read. */
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
 * Tests whether a position belongs to the open log. The inode alone proves nothing: a rewritten log may reuse it, and a
 * restored copy may be written into the same file.
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
