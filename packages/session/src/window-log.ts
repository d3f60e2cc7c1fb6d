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
  /** Makes the idempotency keys. */
  readonly random: RandomSource;
  /** Called once when another handle or process began a new session under the key. */
  readonly onReplaced: (replacement: Replacement) => void;
  /** Called for each record in order of seq, whoever wrote it. */
  readonly onRecord: (stored: StoredRecord) => void;
}

/** Another handle or process began a new session under the key. */
export interface Replacement {
  /** The session this handle was opened with. It is archived. */
  readonly sessionId: string;
  /** The session that has the key now. */
  readonly newSessionId: string;
}

/** An append is tried this many times when others move the head under it. */
const maxMoves = 64;

/**
 * The window of a session: the records a context needs, the head and the entry. An append is taken in without reading it
 * back. What others appended is read when an append or `catchUp` shows it. A subclass makes something of the records.
 */
export class WindowLog {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  facts: WindowFacts = new WindowFacts();
  /** The seq of the oldest record that was read. */
  fromSeq = 1;
  /** Records taken in, and reads of the store, for tests that count. */
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
  /** The session that has the key now, when it is not the one of this log. */
  #replacement: Replacement | null = null;
  /** Somebody redacted records that are known here as they were. */
  #isStale = false;
  /** The newest record that was reported. */
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

  /** The window is about to be read again. */
  protected begin(): void {}

  /** A record belongs to the window now. Called in order of seq. */
  protected take(_stored: StoredRecord): void {}

  /** The head is another record than the newest one of the branch that was taken. */
  protected moveHead(_headId: string | null): void {}

  /** Reads the window for the first time. */
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

  /** As it was when the log was read last. */
  get messageCount(): number {
    return this.#state.messageCount;
  }

  /** Null while the key still has the session of this log. */
  get replacement(): Replacement | null {
    return this.#replacement;
  }

  /** From now on this log is of the session that has the key. */
  acceptReplacement(): Promise<void> {
    return this.#exclusively(() => {
      this.#replacement = null;
      return this.#reload({ acceptsNew: true });
    });
  }

  /**
   * Appends, one at a time, and takes in what was written. Each append has an idempotency key: when its outcome is
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
      // Only one call ever had a key that was made here: a repeat of its own is no news to the caller.
      return isKeyed ? result : { ...result, replayed: false };
    });
  }

  /** Renews the lease. The next renewal takes the place of one that failed, so it needs no key. */
  renew(turn: TurnRequest): Promise<void> {
    return this.#exclusively(async () => {
      // A lease that a power cut takes is a lease of a process that is gone.
      const durability = this.store.capabilities.durabilities[0];
      const options = { turn, ...(durability === undefined ? {} : { durability }) };
      const result = await this.store.append(this.ref, [], options);
      await this.#takeAppended({ ...result, stored: [] }, options);
    });
  }

  /** Appends to the session of this log, and to no other that has its key by now. */
  async #appendHere(
    drafts: readonly RecordDraft[],
    options: AppendOptions & { readonly idempotencyKey: string },
  ): Promise<StoredAppend> {
    // A fence, and the head, are of one session only.
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

  /** Takes in what others appended. */
  catchUp(): Promise<void> {
    return this.#exclusively(() => this.#catchUp());
  }

  /** Takes in what others saved in the entry. That the key has another session by now shows with the next append. */
  refreshEntry(): Promise<void> {
    return this.#exclusively(async () => {
      const { sessionId, entry } = await loadExisting(this.store, this.ref);
      if (sessionId === this.sessionId) this.#entry = entry;
    });
  }

  /** Reads the window again. */
  reload(): Promise<void> {
    return this.#exclusively(() => this.#reload());
  }

  #assertCurrent(): void {
    if (this.#replacement !== null) throw replaced(this.ref, this.#replacement);
  }

  /** @throws {ThroughlineError} SESSION_REPLACED when the key has another session by now, and this one held anything */
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
    this.facts = new WindowFacts();
    this.begin();
    this.fromSeq = records[0]?.seq ?? state.head.lastSeq + 1;
    this.#lastMainId = null;
    this.#isStale = false;
    if (state.sessionId !== this.sessionId) this.#reportedSeq = 0;
    // What was written while it was read is taken in with the next look, together with the head it belongs to.
    for (const record of records) if (record.seq <= state.head.lastSeq) this.#take(record);
    // These are as they are now.
    this.#isStale = false;
    this.#accept(state);
  }

  async #catchUp(): Promise<void> {
    const state = await loadExisting(this.store, this.ref);
    this.#noteSession(state.sessionId);
    if (state.sessionId !== this.sessionId) return this.#reload({ acceptsNew: true });
    await this.#readFrom(this.#head.lastSeq, state.head.lastSeq);
    this.#accept(state);
    if (this.#isStale) await this.#reload();
  }

  #accept(state: SessionState): void {
    this.#state = state;
    this.#entry = state.entry;
    this.#head = state.head;
    this.#followHead(state.head.headId);
  }

  /** A rewind puts the head elsewhere than on the newest record. */
  #followHead(headId: string | null): void {
    if (headId === this.#lastMainId) return;
    this.moveHead(headId);
    this.#lastMainId = headId;
    this.facts.measured = null;
    this.facts.isCountInMessages = true;
    this.facts.thinkingOut = [];
    this.facts.changes += 1;
  }

  async #readFrom(afterSeq: number, lastSeq: number): Promise<void> {
    if (lastSeq <= afterSeq) return;
    this.work.reads += 1;
    for await (const page of this.store.read(this.ref, { afterSeq, beforeSeq: lastSeq + 1 }))
      for (const record of page.records) this.#take(record);
  }

  async #takeAppended(result: StoredAppend, { entry }: AppendOptions): Promise<void> {
    const { head, records, stored } = result;
    // An empty session was replaced by another, or this was written before.
    if (head.sessionId !== this.sessionId || result.replayed) return this.#catchUp();
    const first = records[0]?.seq ?? head.lastSeq + 1;
    await this.#readFrom(this.#head.lastSeq, first - 1);
    for (const record of stored) this.#take(record);
    this.#head = head;
    if (entry !== undefined) this.#entry = patched(this.#entry, entry);
    this.#followHead(head.headId);
    if (this.#isStale) await this.#reload();
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

/** What was appended, with the records as they are stored. */
export type StoredAppend = AppendResult & Required<Pick<AppendResult, "stored">>;

interface ReloadOptions {
  /** The key may have another session by now. @default SESSION_REPLACED */
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

/** Records lose their words without the log getting longer; whoever redacts leaves this note. */
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
