import type { SessionRef } from "@throughline/core";
import { patchEntry } from "@throughline/core/internal";
import type { PayloadCoder } from "@throughline/store-kit/internal";
import { entryOf, UndecodableChange, unlessUndecodable, withoutUndecodableChange } from "./undecodable-entry.ts";
import { decodePatch, type RowChange, type SessionRow } from "./session-row.ts";
import type { EntryPatch } from "./store-envelope.ts";

export interface PatchSource {
  readonly patches: readonly EntryPatch[];
  readonly updatedAtMs: number;
}

interface KeptFold {
  readonly row: SessionRow;
  readonly patches: readonly EntryPatch[];
  readonly count: number;
  readonly folded: SessionRow;
}

interface RedoLog {
  row(sessionId: string): SessionRow | null;
  write(change: RowChange): void;
}

export interface EntryRedoOptions {
  readonly coder: PayloadCoder;
  readonly refOf: (row: SessionRow) => SessionRef;
  readonly onPending: () => void;
}

/**
 * Redoes entry patches from transcripts, as a database redoes its log. The entries log is authoritative for an entry. A
 * patch with a higher revision than the log's row is newer. It exists only in the transcript, which other programs may
 * truncate or delete. A reader of such a patch must therefore write a catch-up line to the entries log. In a folder of
 * OpenClaw, an append writes that line before it is acknowledged. Otherwise the next write of the derived files does
 * it.
 */
export class EntryRedo {
  readonly #options: EntryRedoOptions;
  readonly #folds: Map<string, KeptFold> = new Map();
  readonly #pending: Set<string> = new Set();

  constructor(options: EntryRedoOptions) {
    this.#options = options;
  }

  /**
   * Applies the patches of the transcript to the row. Patches of an earlier call are skipped, because applying them
   * again costs time.
   */
  fold(row: SessionRow, { patches, updatedAtMs }: PatchSource): SessionRow {
    const ref = this.#options.refOf(row);
    const kept = this.#folds.get(row.sessionId);
    const isContinued = kept?.row === row && kept.patches === patches;
    const fresh = isContinued ? patches.slice(kept.count) : patches;
    const folded = foldPatches(isContinued ? kept.folded : row, fresh, updatedAtMs, ({ envelope }) =>
      decodePatch(this.#options.coder, envelope, ref, row.sessionId),
    );
    if (!(folded.entry instanceof UndecodableChange))
      this.#folds.set(row.sessionId, { row, patches, count: patches.length, folded });
    return this.note(row, folded);
  }

  note(row: SessionRow, folded: SessionRow): SessionRow {
    const { sessionId } = row;
    if (folded.revision > row.revision && !this.#pending.has(sessionId)) {
      this.#pending.add(sessionId);
      this.#options.onPending();
    }
    return folded;
  }

  get pending(): readonly string[] {
    return [...this.#pending];
  }

  /**
   * Writes the folded row to the entries log unless the log has it. Call it under the locks of the session and of the
   * entries log. Returns true when it wrote a line, which must be flushed before anything that depends on it is
   * acknowledged.
   */
  write(log: RedoLog, folded: SessionRow): boolean {
    const row = log.row(folded.sessionId);
    const isOwed = row !== null && folded.revision > row.revision;
    if (isOwed) log.write({ op: "catch-up", rows: [withoutUndecodableChange(folded)] });
    this.#pending.delete(folded.sessionId);
    return isOwed;
  }

  forget(sessionId: string): void {
    this.#folds.delete(sessionId);
    this.#pending.delete(sessionId);
  }
}

/**
 * Applies all patches to the row, or none when one cannot be decoded, because a partial result would have a wrong
 * revision.
 */
function foldPatches(
  row: SessionRow,
  patches: readonly EntryPatch[],
  transcriptUpdatedAtMs: number,
  decode: (patch: EntryPatch) => Readonly<Record<string, unknown>>,
): SessionRow {
  let { entry, revision } = row;
  const fold = (): void => {
    for (const patch of patches) {
      if (patch.revision <= revision) continue;
      entry = patchEntry(entryOf({ entry }), decode(patch));
      revision = patch.revision;
    }
  };
  unlessUndecodable(fold, (error) => {
    ({ revision } = row);
    entry = new UndecodableChange(row.entry, error);
  });
  const updatedAtMs = Math.max(row.updatedAtMs, transcriptUpdatedAtMs);
  return entry === row.entry && revision === row.revision && updatedAtMs === row.updatedAtMs
    ? row
    : { ...row, entry, revision, updatedAtMs };
}
