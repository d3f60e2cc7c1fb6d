import {
  appendOnce,
  type AppendOptions,
  type AppendResult,
  hasErrorCode,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import {
  type AppendOnceOptions,
  patchEntry,
  type SplitEntry,
  stateFingerprint,
  updateEntry,
} from "@throughline/core/internal";
import { contextWindow } from "./context-window.ts";
import { supersededCount, receiptOf, type ImportReceipt } from "./import-receipt.ts";
import { importOvertaken, wentItsOwnWay } from "./import-refusals.ts";
import type { ImportOptions } from "./import-types.ts";
import { newAppend } from "./new-append.ts";
import type { ReadBatch } from "./read-source.ts";

export interface WrittenSession {
  readonly ref: SessionRef;
  readonly path: string;
  /** Null while no session exists; nothing is written then. */
  readonly state: SessionState | null;
  /** Holds the receipt that the first batch continues. */
  readonly receipt: ImportReceipt;
  /** Holds the session's last seq when its receipt counts more records than the session holds; null otherwise. */
  readonly heldSeq: number | null;
  /** True if an earlier or concurrent import began the session. */
  readonly isBegunBefore: boolean;
  readonly options: Pick<ImportOptions, "durability" | "signal">;
  /** Splits the index's entry into the stored entry and the blobs that become records; null when they are stored. */
  readonly split: SplitEntry<Readonly<Record<string, unknown>>> | null;
}

/** Writes each batch together with the receipt that counts it, so that an interrupted import can resume. */
export class SessionWriter {
  readonly #store: SessionStore;
  readonly #session: WrittenSession;
  #storedReceipt: ImportReceipt;
  #notes: ImportReceipt["notes"];
  #resetsWindow = false;

  constructor(store: SessionStore, session: WrittenSession) {
    this.#store = store;
    this.#session = session;
    const { state, receipt } = session;
    // After a document grew, the import continues from an earlier position than the stored receipt.
    this.#storedReceipt = (state === null ? null : receiptOf(state.entry)) ?? receipt;
    this.#notes = receipt.notes;
  }

  /**
   * Returns the receipt that the store now holds.
   * @throws {ThroughlineError} APPEND_CONFLICT if another writer has continued the session
   */
  async write(batch: ReadBatch): Promise<ImportReceipt> {
    const { drafts, headBefore, headAfter } = batch;
    const receipt = this.#placed(batch, (this.#session.state?.head.lastSeq ?? 0) + 1);
    if (drafts.length === 0 && headAfter === headBefore) return this.writeReceipt(receipt);
    const { records } = await this.#append(batch, receipt);
    const [first] = records;
    const actual = first === undefined ? receipt : this.#placed(batch, first.seq);
    this.#notes = actual.notes;
    if (actual.notes?.fromSeq === receipt.notes?.fromSeq) return (this.#storedReceipt = receipt);
    // Another writer's side record came first, so the notes have other seq numbers than planned.
    const corrected = { ...this.#blobPlaces(batch, actual), importedFrom: actual };
    await updateEntry(this.#store, this.#session.ref, (entry) => patchEntry(entry, corrected));
    return (this.#storedReceipt = actual);
  }

  /**
   * Stores where the context at the head starts, so that a program that continues the session need not read all
   * records.
   */
  async stateWindow(headId: string | null, movesWindow: boolean): Promise<void> {
    const { ref, options } = this.#session;
    if (!movesWindow && !this.#resetsWindow) return;
    const windowFromSeq = await contextWindow(this.#store, ref, headId, signalOf(options));
    if (windowFromSeq === null) return;
    try {
      await appendOnce(this.#store, ref, [], { windowFromSeq, expect: { head: headId }, ...newAppend() });
    } catch (error) {
      // Another writer has continued the session. Readers then read all records, as without a window.
      if (!hasErrorCode(error, "APPEND_CONFLICT")) throw error;
    }
  }

  /** Restores a head that a Throughline store had set without a record. */
  async moveHead(headId: string | null, receipt: ImportReceipt): Promise<void> {
    const moved = { rewindTo: headId, entry: { importedFrom: receipt } };
    await appendOnce(this.#store, this.#session.ref, [], { ...moved, ...newAppend() });
  }

  /**
   * An update without records has no idempotency key, so it is written only if the receipt it continues from is still
   * stored.
   */
  async writeReceipt(receipt: ImportReceipt): Promise<ImportReceipt> {
    await updateEntry(this.#store, this.#session.ref, (entry) => {
      if (!this.#isStored(receiptOf(entry))) throw importOvertaken(this.#place);
      return patchEntry(entry, { importedFrom: receipt });
    });
    return (this.#storedReceipt = receipt);
  }

  /** @throws {ThroughlineError} APPEND_CONFLICT when the conversation was continued here */
  async assertNotGoneOn(headBefore: string | null): Promise<void> {
    const { ref, isBegunBefore } = this.#session;
    const state = isBegunBefore ? await this.#store.load(ref) : null;
    if (state === null || !this.#isStored(receiptOf(state.entry)) || state.head.headId === headBefore) return;
    throw wentItsOwnWay(this.#place);
  }

  async #append(batch: ReadBatch, receipt: ImportReceipt): Promise<AppendResult> {
    const { ref } = this.#session;
    // Records follow from the bytes up to the end of the batch, but notes come from elsewhere.
    if (batch.notes.count === 0) stateFingerprint(batch.drafts, fingerprintOf(batch, receipt));
    try {
      return await appendOnce(this.#store, ref, batch.drafts, this.#appendOptions(batch, receipt));
    } catch (error) {
      if (hasErrorCode(error, "APPEND_CONFLICT")) await this.assertNotGoneOn(batch.headBefore);
      if (!hasErrorCode(error, "IDEMPOTENCY_MISMATCH")) throw error;
      throw importOvertaken(this.#place, error);
    }
  }

  #appendOptions(batch: ReadBatch, receipt: ImportReceipt): AppendOnceOptions {
    const { options, heldSeq } = this.#session;
    const { headBefore, headAfter, lastMainId, entryPatch, updatedAtMs, entry } = batch;
    const { lineCount, sizeBytes, sha256 } = this.#storedReceipt;
    const again = heldSeq === null ? "" : ` behind ${heldSeq}`;
    const updatedAt = updatedAtMs > 0 ? { updatedAt: updatedAtMs } : {};
    const patch = { ...entryPatch, ...entry, ...this.#blobPlaces(batch, receipt), ...updatedAt };
    return {
      entry: { ...patch, importedFrom: receipt },
      expect: { head: headBefore },
      // The key names the receipt that the batch continues. A retry after an unknown outcome uses the same key.
      // If two imports run at once, the key lets only one continue from this receipt. The head cannot tell them apart
      // after a batch that leaves it in place, such as a header.
      idempotencyKey: `import ${lineCount} ${sizeBytes} ${sha256}${again}`,
      ...(headAfter === (lastMainId ?? headBefore) ? {} : { rewindTo: headAfter }),
      ...this.#window(batch, receipt),
      ...(options.durability === undefined ? {} : { durability: options.durability }),
      ...signalOf(options),
    };
  }

  /** If the head moved other than forwards, it may need records that the stated window leaves out. */
  #window(batch: ReadBatch, receipt: ImportReceipt): Pick<AppendOptions, "windowFromSeq"> {
    const { headBefore, headAfter, lastMainId, firstParentId, isInLine, windowSeq, isComplete } = batch;
    if (windowSeq !== null) {
      // The source's window is valid if seq numbers equal the source's.
      const isSeqKept = isComplete && receipt.notes === undefined && supersededCount(receipt) === 0;
      return isSeqKept ? { windowFromSeq: windowSeq } : {};
    }
    const hasWindow = (this.#session.state?.head.windowSeq ?? 1) > 1;
    const isForwards = isInLine && headAfter === (lastMainId ?? headBefore);
    if (!hasWindow || (isForwards && (lastMainId === null || firstParentId === headBefore))) return {};
    this.#resetsWindow = true;
    return { windowFromSeq: 1 };
  }

  /** Adds the location of the notes to the receipt, given the seq of the batch's first record. */
  #placed({ notes, receipt }: ReadBatch, firstSeq: number): ImportReceipt {
    if (notes.count > 0) return { ...receipt, notes: { fromSeq: firstSeq + notes.index, count: notes.count } };
    return this.#notes === undefined ? receipt : { ...receipt, notes: this.#notes };
  }

  #isStored(receipt: ImportReceipt | null): boolean {
    const { sizeBytes, sha256, lineCount } = this.#storedReceipt;
    return receipt?.sizeBytes === sizeBytes && receipt.sha256 === sha256 && receipt.lineCount === lineCount;
  }

  /** Returns the entry's references to its blobs when this batch contains them. */
  #blobPlaces(batch: ReadBatch, { notes }: ImportReceipt): Readonly<Record<string, unknown>> {
    const { state, split } = this.#session;
    if (batch.notes.count === 0 || notes === undefined || state === null || split === null) return {};
    return split.placesFrom(state.sessionId, notes.fromSeq);
  }

  get #place(): { readonly path: string; readonly key: string } {
    return { path: this.#session.path, key: this.#session.ref.key };
  }
}

/** Two imports of the same bytes state the same text, and one that has read further states another. */
function fingerprintOf({ drafts, headAfter }: ReadBatch, receipt: ImportReceipt): string {
  const { sizeBytes, sha256, lineCount, recordCount } = receipt;
  return JSON.stringify(["import", sizeBytes, sha256, lineCount, recordCount, drafts.length, headAfter]);
}

function signalOf({ signal }: Pick<ImportOptions, "signal">): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
