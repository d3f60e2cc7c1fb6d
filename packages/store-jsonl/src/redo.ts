import type { SessionRef } from "@throughline/core";
import { patchEntry } from "@throughline/core/internal";
import { type PayloadCoder } from "@throughline/store-kit/internal";
import { entryOf, SealedChange, unlessSealed, withoutSealedChange } from "./sealed-entry.ts";
import { decodePatch, type RowChange, type SessionRow } from "./session-row.ts";
import type { EntryPatch } from "./store-envelope.ts";

/** The part of a transcript that changes the entry of its session. */
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

/** The entries log, as far as a debt is paid to it. */
interface PaidLog {
  row(sessionId: string): SessionRow | null;
  write(change: RowChange): void;
}

export interface EntryRedoOptions {
  readonly coder: PayloadCoder;
  readonly refOf: (row: SessionRow) => SessionRef;
  /** Called once for each debt that is noted. */
  readonly onDebt: () => void;
}

/**
 * The patches in the transcripts of one agent, as a database treats its log. The entries log is the truth about an
 * entry. A patch with a higher revision than the row in that log is newer, and it exists in the transcript alone, which
 * other programs may cut or delete. A reader of such a patch therefore owes the entries log a catch-up line (a debt).
 * An append beside OpenClaw pays it before it is acknowledged, every other reader with the next write of the derived
 * files.
 */
export class EntryRedo {
  readonly #options: EntryRedoOptions;
  readonly #folds: Map<string, KeptFold> = new Map();
  /** Ids of sessions whose row lacks a patch. */
  readonly #debts: Set<string> = new Set();

  constructor(options: EntryRedoOptions) {
    this.#options = options;
  }

  /** The row with the patches of its transcript. Patches that were folded in before are not folded in again. */
  fold(row: SessionRow, { patches, updatedAtMs }: PatchSource): SessionRow {
    const ref = this.#options.refOf(row);
    const kept = this.#folds.get(row.sessionId);
    const isContinued = kept?.row === row && kept.patches === patches;
    const fresh = isContinued ? patches.slice(kept.count) : patches;
    const folded = foldPatches(isContinued ? kept.folded : row, fresh, updatedAtMs, ({ envelope }) =>
      decodePatch(this.#options.coder, envelope, ref, row.sessionId),
    );
    if (!(folded.entry instanceof SealedChange))
      this.#folds.set(row.sessionId, { row, patches, count: patches.length, folded });
    return this.note(row, folded);
  }

  /** Notes a debt if the folded row is newer than the row of the log. Returns the folded row. */
  note(row: SessionRow, folded: SessionRow): SessionRow {
    const { sessionId } = row;
    if (folded.revision > row.revision && !this.#debts.has(sessionId)) {
      this.#debts.add(sessionId);
      this.#options.onDebt();
    }
    return folded;
  }

  /** Ids of the sessions with a debt. */
  get debts(): readonly string[] {
    return [...this.#debts];
  }

  /**
   * Pays the debt of a session: writes the folded row to the entries log unless the log has it. Under the locks of the session
   * and of the entries. True when a line was written: it must be flushed before anything that depends on it is acknowledged.
   */
  pay(log: PaidLog, folded: SessionRow): boolean {
    const row = log.row(folded.sessionId);
    const isOwed = row !== null && folded.revision > row.revision;
    if (isOwed) log.write({ op: "catch-up", rows: [withoutSealedChange(folded)] });
    this.#debts.delete(folded.sessionId);
    return isOwed;
  }

  forget(sessionId: string): void {
    this.#folds.delete(sessionId);
    this.#debts.delete(sessionId);
  }
}

/** The session as its transcript has changed it since the row was written; all of that, or none where some cannot be decoded. */
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
  unlessSealed(fold, (error) => {
    ({ revision } = row);
    entry = new SealedChange(row.entry, error);
  });
  const updatedAtMs = Math.max(row.updatedAtMs, transcriptUpdatedAtMs);
  return entry === row.entry && revision === row.revision && updatedAtMs === row.updatedAtMs
    ? row
    : { ...row, entry, revision, updatedAtMs };
}
