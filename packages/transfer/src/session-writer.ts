import {
  appendOnce,
  type AppendResult,
  hasErrorCode,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { patchEntry, type SplitEntry, updateEntry } from "@throughline/core/internal";
import { contextWindow } from "./context-window.ts";
import { supersededCount } from "./continued-line.ts";
import { lostRecords } from "./held-part.ts";
import type { ImportBatch } from "./import-batch.ts";
import { receiptOf } from "./import-receipt.ts";
import type { ImportReceipt } from "./receipt-types.ts";
import { importOvertaken, wentItsOwnWay } from "./import-refusals.ts";
import { newAppend } from "./new-append.ts";
import type { ImportOptions } from "./import-types.ts";

export interface WrittenLines {
  readonly headBefore: string | null;
  readonly headAfter: string | null;
  /** Sets the activity time in the entry; 0 sets none. */
  readonly updatedAtMs: number;
  /** True if every line so far has a record. */
  readonly isComplete: boolean;
  readonly entry: Readonly<Record<string, unknown>>;
}

interface WriterOptions {
  readonly ref: SessionRef;
  readonly path: string;
  /** Null while no session exists; nothing is written then. */
  readonly state: SessionState | null;
  readonly receipt: ImportReceipt;
  /** True if an earlier or concurrent import began the session. */
  readonly isBegunBefore: boolean;
  readonly options: ImportOptions;
  /** Splits the index's entry into the stored entry and the blobs that become records. */
  readonly split: () => SplitEntry<Readonly<Record<string, unknown>>>;
}

/** Writes each batch together with the receipt that counts it, so that an interrupted import can resume. */
export class SessionWriter {
  readonly #store: SessionStore;
  readonly #given: WriterOptions;
  readonly #heldSeq: number | null;
  #storedReceipt: ImportReceipt;

  constructor(store: SessionStore, given: WriterOptions) {
    this.#store = store;
    this.#given = given;
    const { state, receipt } = given;
    // After a document grew, the import continues from an earlier position than the stored receipt.
    this.#storedReceipt = (state === null ? null : receiptOf(state.entry)) ?? receipt;
    this.#heldSeq = state === null || lostRecords(state, receipt) === 0 ? null : state.head.lastSeq;
  }

  /**
   * Returns the receipt that the store now holds.
   * @throws {ThroughlineError} APPEND_CONFLICT if another writer has continued the session
   */
  async write(batch: ImportBatch, receipt: ImportReceipt, lines: WrittenLines): Promise<ImportReceipt> {
    if (batch.drafts.length === 0 && lines.headAfter === lines.headBefore) return this.writeReceipt(receipt);
    const { records } = await this.#append(batch, receipt, lines);
    const [first] = records;
    const actual = first === undefined ? receipt : withNotes(receipt, batch, first.seq);
    if (actual.notes?.fromSeq === receipt.notes?.fromSeq) return (this.#storedReceipt = receipt);
    // Another writer's side record came first, so the notes have other seq numbers than planned.
    const corrected = { ...this.#blobPlaces(batch, actual), importedFrom: actual };
    await updateEntry(this.#store, this.#given.ref, (entry) => patchEntry(entry, corrected));
    return (this.#storedReceipt = actual);
  }

  /**
   * Stores where the context at the head starts, so that a program that continues the session need not read all
   * records.
   */
  async stateWindow(headId: string | null): Promise<void> {
    const { ref, state, options } = this.#given;
    if (state === null) return;
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
    await appendOnce(this.#store, this.#given.ref, [], { ...moved, ...newAppend() });
  }

  /**
   * An update without records has no idempotency key, so it is written only if the receipt it continues from is still
   * stored.
   */
  async writeReceipt(receipt: ImportReceipt): Promise<ImportReceipt> {
    const { ref } = this.#given;
    await updateEntry(this.#store, ref, (entry) => {
      if (!this.#isStored(receiptOf(entry))) throw importOvertaken(this.#place);
      return patchEntry(entry, { importedFrom: receipt });
    });
    return (this.#storedReceipt = receipt);
  }

  /** @throws {ThroughlineError} APPEND_CONFLICT when the conversation was continued here */
  async assertNotGoneOn(headBefore: string | null): Promise<void> {
    const { ref, isBegunBefore } = this.#given;
    const state = isBegunBefore ? await this.#store.load(ref) : null;
    if (state === null || !this.#isStored(receiptOf(state.entry)) || state.head.headId === headBefore) return;
    throw wentItsOwnWay(this.#place);
  }

  async #append(batch: ImportBatch, receipt: ImportReceipt, lines: WrittenLines): Promise<AppendResult> {
    const { ref, options } = this.#given;
    const { headBefore, headAfter, updatedAtMs, isComplete, entry } = lines;
    const isSeqKept = isComplete && receipt.notes === undefined && supersededCount(receipt) === 0;
    const patch = { ...entry, ...this.#blobPlaces(batch, receipt) };
    const heads = { headBefore, headAfter, updatedAtMs };
    const hasWindow = (this.#given.state?.head.windowSeq ?? 1) > 1;
    const [storedReceipt, heldSeq] = [this.#storedReceipt, this.#heldSeq];
    const place = { ...heads, receipt, isSeqKept, hasWindow, patch, storedReceipt, heldSeq };
    try {
      return await appendOnce(this.#store, ref, batch.drafts, batch.appendOptions(place, options));
    } catch (error) {
      if (hasErrorCode(error, "APPEND_CONFLICT")) await this.assertNotGoneOn(headBefore);
      if (!hasErrorCode(error, "IDEMPOTENCY_MISMATCH")) throw error;
      throw importOvertaken(this.#place, error);
    }
  }

  #isStored(receipt: ImportReceipt | null): boolean {
    const { sizeBytes, sha256, lineCount } = this.#storedReceipt;
    return receipt?.sizeBytes === sizeBytes && receipt.sha256 === sha256 && receipt.lineCount === lineCount;
  }

  /** Returns the entry's references to its blobs when this batch contains them. */
  #blobPlaces(batch: ImportBatch, { notes }: ImportReceipt): Readonly<Record<string, unknown>> {
    const { state, split } = this.#given;
    if (batch.notes.length === 0 || notes === undefined || state === null) return {};
    return split().placesFrom(state.sessionId, notes.fromSeq);
  }

  get #place(): { readonly path: string; readonly key: string } {
    return { path: this.#given.path, key: this.#given.ref.key };
  }
}

function signalOf({ signal }: ImportOptions): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

/** Adds the location of the batch's notes to the receipt, given the seq of the batch's first record. */
export function withNotes(receipt: ImportReceipt, batch: ImportBatch, firstSeq: number): ImportReceipt {
  const { notes, notesIndex } = batch;
  if (notes.length === 0) return receipt;
  return { ...receipt, notes: { fromSeq: firstSeq + notesIndex, count: notes.length } };
}
