import {
  appendOnce,
  type AppendOptions,
  type AppendResult,
  hasErrorCode,
  type RandomSource,
  readWindow,
  type RecordDraft,
  type SessionEntry,
  type SessionHead,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type StoredRecord,
  ThroughlineError,
  type TurnRequest,
} from "@throughline/core";
import { loadExisting, throughlineKind, withStored } from "@throughline/core/internal";
import type { RedactDraft } from "./session-options.ts";
import { WindowFacts } from "./window-facts.ts";

export interface WindowLogOptions {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  readonly redact: RedactDraft | null;
  /** Generates the idempotency keys. */
  readonly random: RandomSource;
  /** Runs once when another handle or process began a new session under the key. */
  readonly onReplaced: (replacement: Replacement) => void;
  /** Runs for each record in order of seq, including records of other processes. */
  readonly onRecord: (stored: StoredRecord) => void;
}

/** Describes a new session that another handle or process began under the key. */
export interface Replacement {
  /** Holds the id of the session that this handle was opened with, which is archived. */
  readonly sessionId: string;
  /** Holds the id of the session that the key now refers to. */
  readonly newSessionId: string;
}

/** Limits how often an append is tried again after another process moved the head. */
const maxMoves = 64;

/**
 * Holds the window of a session: the records that a context needs, the head and the entry. An append is applied without
 * reading it back. Records of other processes are read when an append or `catchUp` reveals them. Subclasses process the
 * records.
 */
export class WindowLog {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  facts: WindowFacts = new WindowFacts();
  /** Holds the seq of the oldest record that was read. */
  fromSeq = 1;
  /** Counts the processed records and the reads of the store, for tests. */
  readonly work: { recordsTaken: number; reads: number } = { recordsTaken: 0, reads: 0 };
  #state: SessionState;
  #entry: SessionEntry;
  #head: SessionHead;
  #lastMainId: string | null = null;
  readonly #redact: RedactDraft | null;
  readonly #random: RandomSource;
  readonly #onReplaced: (replacement: Replacement) => void;
  readonly #onRecord: (stored: StoredRecord) => void;
  #tail: Promise<unknown> = Promise.resolve();
  /** Names the session that has the key now, when it is not the session of this log. */
  #replacement: Replacement | null = null;
  /** Is true when another process redacted records that this log has read before. */
  #isStale = false;
  #reportedSeq = 0;

  protected constructor(options: WindowLogOptions, state: SessionState) {
    this.store = options.store;
    this.ref = options.ref;
    this.#redact = options.redact;
    this.#random = options.random;
    this.#onReplaced = options.onReplaced;
    this.#onRecord = options.onRecord;
    this.#state = state;
    this.#entry = state.entry;
    this.#head = state.head;
  }

  /** Runs before the window is read again. */
  protected begin(): void {}

  /**
   * Runs before records join the window, to read what they refer to. Returns null when there is nothing to wait for.
   * @param _isWhole whether they are the whole window
   */
  protected beforeTake(_records: readonly StoredRecord[], _isWhole: boolean): Promise<void> | null {
    return null;
  }

  /** Runs for each record that joins the window, in order of seq. */
  protected take(_stored: StoredRecord): void {}

  /** Runs when the head is not the newest record that was passed to `take`. */
  protected moveHead(_headId: string | null): void {}

  protected readFirst(signal?: AbortSignal): Promise<void> {
    return this.#reload({ acceptsNew: true, signal });
  }

  get sessionId(): string {
    return this.#head.sessionId;
  }

  get head(): SessionHead {
    return this.#head;
  }

  get entry(): SessionEntry {
    return this.#entry;
  }

  /** Counts the messages at the last refresh of the session state. */
  get messageCount(): number {
    return this.#state.messageCount;
  }

  /** Returns null while the key still refers to the session of this log. */
  get replacement(): Replacement | null {
    return this.#replacement;
  }

  /** Switches this log to the session that the key refers to now. */
  acceptReplacement(): Promise<void> {
    return this.#exclusively(() => {
      this.#replacement = null;
      return this.#reload({ acceptsNew: true });
    });
  }

  /**
   * Runs one append at a time and applies the stored records. Each append has an idempotency key. When its outcome is
   * unknown, it is repeated with the key until the store acknowledges it.
   * @throws {ThroughlineError} SESSION_REPLACED, and what the store throws
   */
  append(drafts: readonly RecordDraft[], options: AppendOptions): Promise<StoredAppend> {
    return this.#exclusively(async () => {
      this.#assertCurrent();
      const redact = this.#redact;
      const written = redact === null ? drafts : drafts.map((draft) => redact(draft));
      const isKeyed = options.idempotencyKey !== undefined;
      const idempotencyKey = options.idempotencyKey ?? this.#random.uuid();
      const keyed = { ...options, idempotencyKey, isNewKey: !isKeyed };
      const result = await this.#appendHere(written, keyed);
      await this.#takeAppended(result, options);
      // A key that was generated here is known to one call only. A replay is then a repeat of this call, and no news
      // for the caller.
      return isKeyed ? result : { ...result, replayed: false };
    });
  }

  /** Renews the lease. The next renewal replaces a failed one, so a renewal needs no idempotency key. */
  renew(turn: TurnRequest): Promise<void> {
    return this.#exclusively(async () => {
      // The weakest durability is enough. A power cut that loses the renewal also ends the process with the lease.
      const durability = this.store.capabilities.durabilities[0];
      const options = { turn, ...(durability === undefined ? {} : { durability }) };
      const result = await this.store.append(this.ref, [], options);
      await this.#takeAppended({ ...result, stored: [] }, options);
    });
  }

  /** Appends only to the session of this log. A new session under the key would reject the expected head. */
  async #appendHere(
    drafts: readonly RecordDraft[],
    options: AppendOptions & { readonly idempotencyKey: string },
  ): Promise<StoredAppend> {
    // A fence and an expected head are valid in one session only, so they already pin the append.
    const isPinned = options.turn !== undefined || options.expect !== undefined;
    for (let moves = 0; ; moves++) {
      const expect = isPinned ? {} : { expect: { head: this.#head.headId } };
      try {
        const result = await appendOnce(this.store, this.ref, drafts, { ...options, ...expect, ...stored });
        return (await withStored(this.store, this.ref, result, stored)) as StoredAppend;
      } catch (error) {
        if (isPinned || !hasErrorCode(error, "APPEND_CONFLICT") || moves >= maxMoves) throw error;
        await this.#catchUp();
      }
    }
  }

  /** Applies the records that other processes appended. */
  catchUp(): Promise<void> {
    return this.#exclusively(() => this.#catchUp());
  }

  /** Applies changes of the entry by other processes. A new session under the key is detected by the next append. */
  refreshEntry(): Promise<void> {
    return this.#exclusively(async () => {
      const { sessionId, entry } = await loadExisting(this.store, this.ref);
      if (sessionId === this.sessionId) this.#entry = entry;
    });
  }

  reload(): Promise<void> {
    return this.#exclusively(() => this.#reload());
  }

  #assertCurrent(): void {
    if (this.#replacement !== null) throw replaced(this.ref, this.#replacement);
  }

  /** @throws {ThroughlineError} SESSION_REPLACED when the key refers to a new session and this one is not empty */
  #noteSession(newSessionId: string): void {
    const { sessionId } = this;
    if (newSessionId === sessionId || this.#head.lastSeq === 0) return;
    const isNews = this.#replacement?.newSessionId !== newSessionId;
    this.#replacement = { sessionId, newSessionId };
    if (isNews) this.#onReplaced(this.#replacement);
    throw replaced(this.ref, this.#replacement);
  }

  #exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#tail.then(work);
    this.#tail = done.catch(() => null);
    return done;
  }

  async #reload({ acceptsNew = false, signal }: ReloadOptions = {}): Promise<void> {
    this.work.reads += 1;
    const { state, records } = await readWindow(this.store, this.ref, signal === undefined ? {} : { signal });
    if (!acceptsNew) this.#noteSession(state.sessionId);
    // Records that were written during the read are left for the next refresh, together with the head that belongs to
    // them.
    const taken = records.filter(({ seq }) => seq <= state.head.lastSeq);
    await this.beforeTake(taken, true);
    this.facts = new WindowFacts();
    this.begin();
    this.fromSeq = records[0]?.seq ?? state.head.lastSeq + 1;
    this.#lastMainId = null;
    this.#isStale = false;
    if (state.sessionId !== this.sessionId) this.#reportedSeq = 0;
    for (const record of taken) this.#take(record);
    // Redaction notes in this read are no news, because the records were read in their redacted form.
    this.#isStale = false;
    this.#accept(state);
  }

  async #catchUp(): Promise<void> {
    const state = await loadExisting(this.store, this.ref);
    this.#noteSession(state.sessionId);
    if (state.sessionId !== this.sessionId) return this.#reload({ acceptsNew: true });
    await this.#readFrom(this.#head.lastSeq, state.head.lastSeq);
    this.#accept(state);
    if (this.#isStale || this.#lacksRecords) await this.#reload();
  }

  #accept(state: SessionState): void {
    this.#state = state;
    this.#entry = state.entry;
    this.#head = state.head;
    this.#followHead(state.head.headId);
  }

  /** A rewind puts the head on an older record than the newest one. */
  #followHead(headId: string | null): void {
    if (headId === this.#lastMainId) return;
    this.moveHead(headId);
    this.#lastMainId = headId;
    this.facts.measured = null;
    this.facts.isCountInMessages = true;
    this.facts.thinkingOut = [];
    this.facts.changes += 1;
  }

  /** A rewind to before a compaction needs records that are older than the window. */
  get #lacksRecords(): boolean {
    const { windowSeq } = this.#head;
    return windowSeq !== null && windowSeq < this.fromSeq;
  }

  async #readFrom(afterSeq: number, lastSeq: number): Promise<void> {
    if (lastSeq <= afterSeq) return;
    this.work.reads += 1;
    for await (const { records } of this.store.read(this.ref, { afterSeq, beforeSeq: lastSeq + 1 })) {
      await this.beforeTake(records, false);
      for (const record of records) this.#take(record);
    }
  }

  async #takeAppended(result: StoredAppend, { entry }: AppendOptions): Promise<void> {
    const { head, records, stored } = result;
    // Either a new session replaced an empty one, or the append was stored by an earlier try.
    if (head.sessionId !== this.sessionId || result.replayed) return this.#catchUp();
    const first = records[0]?.seq ?? head.lastSeq + 1;
    await this.#readFrom(this.#head.lastSeq, first - 1);
    const loading = this.beforeTake(stored, false);
    if (loading !== null) await loading;
    for (const record of stored) this.#take(record);
    this.#head = head;
    if (entry !== undefined) this.#entry = patched(this.#entry, entry);
    this.#followHead(head.headId);
    if (this.#isStale || this.#lacksRecords) await this.#reload();
  }

  #take(stored: StoredRecord): void {
    this.work.recordsTaken += 1;
    this.take(stored);
    if (!stored.side) this.#lastMainId = stored.id;
    this.facts.take(stored);
    if (isRedactionNote(stored)) this.#isStale = true;
    if (stored.seq <= this.#reportedSeq) return;
    this.#reportedSeq = stored.seq;
    this.#onRecord(stored);
  }
}

const stored = { return: "stored" } as const;

export type StoredAppend = AppendResult & Required<Pick<AppendResult, "stored">>;

interface ReloadOptions {
  /** Accepts a new session under the key. @default throws SESSION_REPLACED */
  readonly acceptsNew?: boolean;
  readonly signal?: AbortSignal | undefined;
}

function replaced(ref: SessionRef, { sessionId, newSessionId }: Replacement): ThroughlineError {
  return new ThroughlineError(
    "SESSION_REPLACED",
    `Session ${sessionId} was reset by another program: the key ${ref.key} has the new session ${newSessionId}.`,
    { outcome: "not-applied", details: { ...ref, sessionId, newSessionId } },
  );
}

/**
 * A redaction changes records without extending the log. The redacting process leaves this note, so that other
 * processes read the records again.
 */
function isRedactionNote({ record }: StoredRecord): boolean {
  if (throughlineKind(record) !== "note") return false;
  const { kind, redactedSeqs } = (record["data"] ?? {}) as { readonly kind?: unknown; readonly redactedSeqs?: unknown };
  return kind === "summary-outdated" && Array.isArray(redactedSeqs);
}

function patched(entry: SessionEntry, patch: Readonly<Record<string, unknown>>): SessionEntry {
  const next: Record<string, unknown> = { ...entry };
  for (const [field, value] of Object.entries(patch)) {
    if (value === undefined) delete next[field];
    else next[field] = value;
  }
  return next as SessionEntry;
}
