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

/** Where the lines of a batch put the session. */
export interface WrittenLines {
  readonly headBefore: string | null;
  readonly headAfter: string | null;
  /** The activity time to state; 0: none is known. */
  readonly updatedAtMs: number;
  /** Whether every line so far has a record. */
  readonly isComplete: boolean;
  /** Fields of the entry that the lines state. */
  readonly entry: Readonly<Record<string, unknown>>;
}

interface WriterOptions {
  readonly ref: SessionRef;
  readonly path: string;
  /** Null while there is no session: nothing is written then. */
  readonly state: SessionState | null;
  /** What the import continues from. */
  readonly receipt: ImportReceipt;
  /** Whether an earlier run, or another one that is under way, began the session. */
  readonly isBegunBefore: boolean;
  readonly options: ImportOptions;
  /** The index's entry, and what of it is kept in records. */
  readonly split: () => SplitEntry<Readonly<Record<string, unknown>>>;
}

/** Writes what an import has read into its session, always together with the receipt that counts it. */
export class SessionWriter {
  readonly #store: SessionStore;
  readonly #given: WriterOptions;
  readonly #heldSeq: number | null;
  #storedReceipt: ImportReceipt;

  constructor(store: SessionStore, given: WriterOptions) {
    this.#store = store;
    this.#given = given;
    const { state, receipt } = given;
    // Of a document that grew, the import continues from less than the store's receipt counts.
    this.#storedReceipt = (state === null ? null : receiptOf(state.entry)) ?? receipt;
    this.#heldSeq = state === null || lostRecords(state, receipt) === 0 ? null : state.head.lastSeq;
  }

  /**
   * Gives the receipt that is now in the store.
   * @throws {ThroughlineError} APPEND_CONFLICT if another writer has continued the session
   */
  async write(batch: ImportBatch, receipt: ImportReceipt, lines: WrittenLines): Promise<ImportReceipt> {
    if (batch.drafts.length === 0 && lines.headAfter === lines.headBefore) return this.writeReceipt(receipt);
    const { records } = await this.#append(batch, receipt, lines);
    const [first] = records;
    const actual = first === undefined ? receipt : withNotes(receipt, batch, first.seq);
    if (actual.notes?.fromSeq === receipt.notes?.fromSeq) return (this.#storedReceipt = receipt);
    // Somebody else's side record came first.
    const corrected = { ...this.#blobPlaces(batch, actual), importedFrom: actual };
    await updateEntry(this.#store, this.#given.ref, (entry) => patchEntry(entry, corrected));
    return (this.#storedReceipt = actual);
  }

  /**
   * Stores where the context at the head starts, so that a program that continues the session need not read all of it.
   */
  async stateWindow(headId: string | null): Promise<void> {
    const { ref, state, options } = this.#given;
    if (state === null) return;
    const windowFromSeq = await contextWindow(this.#store, ref, headId, signalOf(options));
    if (windowFromSeq === null) return;
    try {
      await appendOnce(this.#store, ref, [], { windowFromSeq, expect: { head: headId }, ...newAppend() });
    } catch (error) {
      // Somebody has gone on with it: all of it is read then, as of any session that states nothing.
      if (!hasErrorCode(error, "APPEND_CONFLICT")) throw error;
    }
  }

  /** Puts the head where a store of ours had it without a record. */
  async moveHead(headId: string | null, receipt: ImportReceipt): Promise<void> {
    const moved = { rewindTo: headId, entry: { importedFrom: receipt } };
    await appendOnce(this.#store, this.#given.ref, [], { ...moved, ...newAppend() });
  }

  /** What leaves the head alone, and has no record to be known by, is written only upon the receipt it goes on from. */
  async writeReceipt(receipt: ImportReceipt): Promise<ImportReceipt> {
    const { ref } = this.#given;
    await updateEntry(this.#store, ref, (entry) => {
      if (!this.#isStored(receiptOf(entry))) throw importOvertaken(this.#place);
      return patchEntry(entry, { importedFrom: receipt });
    });
    return (this.#storedReceipt = receipt);
  }

  /** Whether the conversation went on here by itself. @throws {ThroughlineError} APPEND_CONFLICT when it did */
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

  /** What the entry says of its blobs, when they are in this batch. */
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

/** The receipt that says where the notes of this batch are, when its first record has that seq. */
export function withNotes(receipt: ImportReceipt, batch: ImportBatch, firstSeq: number): ImportReceipt {
  const { notes, notesIndex } = batch;
  if (notes.length === 0) return receipt;
  return { ...receipt, notes: { fromSeq: firstSeq + notesIndex, count: notes.length } };
}
