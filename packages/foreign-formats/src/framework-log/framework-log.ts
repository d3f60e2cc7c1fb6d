import {
  type AppendDraft,
  appendOnce,
  type AppendOptions,
  type AppendResult,
  type Clock,
  hasErrorCode,
  openSession,
  type RandomSource,
  type RecordDraft,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
  type TurnRequest,
} from "@throughline/core";
import {
  assertKnownOptions,
  createRecordIds,
  type Fields,
  loadExisting,
  optionKinds,
  type OptionTable,
  portKinds,
  renewTurn,
  type SourcedRecord,
  systemClock,
  systemRandom,
  throughlineDraft,
  throughlineKind,
} from "@throughline/core/internal";
import { type DecidedCall, decisionDraft, type FrameworkCall, waitingChange } from "./waiting-calls.ts";

/** Holds the options of `createFrameworkLog`. */
export interface FrameworkLogOptions {
  /** Sets the store that holds the session. The caller closes it. */
  readonly store: SessionStore;
  /** Sets the address of the session in the store. The session may not exist yet. */
  readonly ref: SessionRef;
  /** Sets fields of the session's entry for the case that the first append creates the session. @default none */
  readonly entry?: Readonly<Record<string, unknown>> | undefined;
  /** Sets which records a view holds: those that a context needs, or every record of the session. @default "window" */
  readonly reads?: "window" | "all" | undefined;
  /** Supplies the time that new records state. @default the system clock */
  readonly clock?: Clock | undefined;
  /** Supplies the randomness for session and record ids. @default the system's randomness */
  readonly random?: RandomSource | undefined;
}

/** Holds a session's state and records at the time of a read. */
export interface LogView {
  /** Holds the session's state; null before the session was created. */
  readonly state: SessionState | null;
  /** Holds the records with their source text, in order of seq: those that a context needs, or all of them. */
  readonly records: readonly SourcedRecord[];
  /** States the id of the last record of the branch; null before the first record. */
  readonly headId: string | null;
  /** States the seq of the newest record; 0 when the session is empty. */
  readonly lastSeq: number;
  /** States the id of the session that the key resolves to; empty before the session was created. */
  readonly sessionId: string;
}

/** Describes the position in a log at which new records are appended. */
export interface LogPlace extends Pick<LogView, "records" | "headId" | "lastSeq"> {
  /** States the current time in the format that records use. */
  readonly timestamp: string;
  /** Returns a new record id. */
  readonly nextId: () => string;
}

/** Describes one append. */
export interface LogChange {
  /** Holds the records to append, oldest first. */
  readonly drafts: readonly AppendDraft[];
  /** Moves the head to this earlier record after the drafts are appended. */
  readonly rewindTo?: string | null;
  /** Sets fields of the session's entry in the same append. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /**
   * Opens or closes a turn in the same append, or joins one that another process opened. A turn of `openTurn` is joined
   * without it.
   */
  readonly turn?: TurnRequest | null;
}

/** Holds the options of `openTurn`. */
interface TurnOptions {
  /** Names the owner of the turn, for people who read the lock. */
  readonly owner: string;
  /**
   * Sets the lease of the turn in milliseconds. Another process may open a turn when the lease was not renewed for this
   * long.
   */
  readonly leaseMs: number;
  /** Holds decisions on calls that waited. They are stored with the beginning of the turn, which may run the calls. */
  readonly decisions?: readonly DecidedCall[];
}

/** Reads one session of a framework as it grows, and appends at its head. */
export interface FrameworkLog {
  /** States the address of the session in the store. */
  readonly ref: SessionRef;
  /** Returns a new record id. */
  nextId(): string;
  /** Returns the position at which new records follow a view. */
  place(view: LogView): LogPlace;
  /** Reads the records that were added since the last read. A session that does not exist gives an empty view. */
  view(): Promise<LogView>;
  /**
   * Appends the change that `make` returns for the newest view, all or nothing. When another writer appended first,
   * `make` is called again with a new view. A change of null appends nothing. Calls run one after the other.
   * @returns the view after the append
   * @throws {ThroughlineError} SESSION_BUSY, TURN_FENCED, and any error of the store or of `make`
   */
  append(make: (view: LogView) => LogChange | null): Promise<LogView>;
  /**
   * Opens a turn. Every append until its end belongs to the turn.
   * @throws {ThroughlineError} SESSION_BUSY
   */
  openTurn(options: TurnOptions): Promise<LogTurn>;
}

/** Represents an open turn of the session. */
interface LogTurn {
  /**
   * Closes the turn. With the state `failed` or `aborted`, the call ignores a turn that another process has taken over.
   * @param waiting calls that wait for a decision; the turn then ends as waiting
   */
  close(state: "done" | "failed" | "aborted", waiting?: readonly FrameworkCall[]): Promise<void>;
}

/** Limits the retries of an append that loses to other writers. */
const maxAttempts = 64;

const table: OptionTable<FrameworkLogOptions> = {
  store: optionKinds.required(optionKinds.objectWith("load", "append", "read")),
  ref: optionKinds.required(optionKinds.object),
  entry: optionKinds.object,
  reads: optionKinds.oneOf(["window", "all"]),
  clock: portKinds.clock,
  random: portKinds.random,
};

/**
 * Creates the log of a framework's session. The session is created by its first append.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function createFrameworkLog(options: FrameworkLogOptions): FrameworkLog {
  assertKnownOptions<FrameworkLogOptions>("createFrameworkLog", options, table);
  return new Log(options);
}

class Log implements FrameworkLog {
  readonly ref: SessionRef;
  readonly #store: SessionStore;
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #entry: Readonly<Record<string, unknown>>;
  readonly #ids: { next(): string };
  readonly #readsAll: boolean;
  #records: SourcedRecord[] = [];
  #sessionId: string | null = null;
  /** Calls chain on this promise, because two appends at once would both expect the same head. */
  #last: Promise<unknown> = Promise.resolve();
  #turn: { readonly fence: number; readonly renewed: ReturnType<typeof renewTurn> } | null = null;

  constructor(options: FrameworkLogOptions) {
    const { store, ref, entry = {}, reads = "window", clock = systemClock, random = systemRandom } = options;
    this.ref = ref;
    this.#store = store;
    this.#clock = clock;
    this.#random = random;
    this.#entry = entry;
    this.#readsAll = reads === "all";
    this.#ids = createRecordIds({ clock, random });
  }

  nextId(): string {
    return this.#ids.next();
  }

  place({ headId, lastSeq, records }: LogView): LogPlace {
    const timestamp = new Date(this.#clock.nowMs()).toISOString();
    return { headId, lastSeq, records, timestamp, nextId: () => this.#ids.next() };
  }

  view(): Promise<LogView> {
    return this.#inOrder(() => this.#read());
  }

  append(make: (view: LogView) => LogChange | null): Promise<LogView> {
    return this.#inOrder(() => this.#append(make));
  }

  openTurn(options: TurnOptions): Promise<LogTurn> {
    return this.#inOrder(() => this.#openTurn(options));
  }

  #inOrder<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => {});
    return result;
  }

  async #read(): Promise<LogView> {
    const state = await this.#store.load(this.ref);
    if (state === null) {
      this.#forget(null);
      return { state, records: [], headId: null, lastSeq: 0, sessionId: "" };
    }
    if (state.sessionId !== this.#sessionId) this.#forget(state.sessionId);
    const { lastSeq, headId, windowSeq } = state.head;
    const start = this.#readsAll ? 0 : (windowSeq ?? 1) - 1;
    const known = this.#records.at(-1)?.seq ?? start;
    if (lastSeq > known && !(await this.#readAfter(known))) {
      // A redaction changed records that are cached, so the whole range is read again.
      this.#forget(state.sessionId);
      await this.#readAfter(start);
    }
    const isAhead = (this.#records.at(-1)?.seq ?? 0) > lastSeq;
    const records = isAhead ? this.#records.filter(({ seq }) => seq <= lastSeq) : this.#records;
    return { state, records, headId, lastSeq, sessionId: state.sessionId };
  }

  /** Returns false when a new record invalidates older records that are cached. */
  async #readAfter(afterSeq: number): Promise<boolean> {
    const isFirst = this.#records.length === 0;
    const found: SourcedRecord[] = [];
    for await (const page of this.#store.read(this.ref, { afterSeq, payload: "source" })) found.push(...page.records);
    if (!isFirst && found.some(changesOlder)) return false;
    // Views that callers hold keep the old array, so the new records go into a new array.
    this.#records = [...this.#records, ...found];
    return true;
  }

  #forget(sessionId: string | null): void {
    this.#records = [];
    this.#sessionId = sessionId;
  }

  async #append(make: (view: LogView) => LogChange | null): Promise<LogView> {
    for (let attempt = 1; ; attempt++) {
      const view = await this.#read();
      const change = make(view);
      if (change === null) return view;
      if (view.state === null) {
        await openSession(this.#store, this.ref, { random: this.#random, entry: this.#entry });
        // Another process may have created the session with records after the first read.
        if ((await this.#read()).lastSeq > 0) continue;
      }
      try {
        const result = await this.#write(change, { expect: { head: view.headId } });
        return await this.#after(view, change, result);
      } catch (error) {
        if (!hasErrorCode(error, "APPEND_CONFLICT") || attempt >= maxAttempts) throw error;
      }
    }
  }

  async #write(
    { drafts, rewindTo, entry = {}, turn: asked = null }: LogChange,
    options: AppendOptions,
  ): Promise<AppendResult> {
    const turn = this.#turn;
    if (turn !== null && turn.renewed.failure !== null) throw turn.renewed.failure;
    return await appendOnce(this.#store, this.ref, drafts, {
      ...(turn === null ? {} : { turn: { action: "within", fence: turn.fence } as const }),
      ...(asked === null ? {} : { turn: asked }),
      ...options,
      ...(rewindTo === undefined ? {} : { rewindTo }),
      entry: { ...entry, updatedAt: this.#clock.nowMs() },
      idempotencyKey: this.#random.uuid(),
      isNewKey: true,
      return: "stored",
    });
  }

  /**
   * Builds the view after an append from the append's result. The log reads the store only when another writer appended
   * in between.
   */
  async #after(before: LogView, { drafts }: LogChange, result: AppendResult): Promise<LogView> {
    const { stored, records, head } = result;
    const isNext = (records[0]?.seq ?? before.lastSeq + 1) === before.lastSeq + 1;
    if (stored === undefined || !isNext || before.state === null || head.sessionId !== before.sessionId)
      return this.#read();
    const added = stored.map((record, at): SourcedRecord => {
      const draft = drafts[at] as AppendDraft;
      return "source" in draft && !("type" in draft)
        ? { ...record, source: (draft as { source: string }).source, isSourceCanonical: false }
        : { ...record, source: JSON.stringify(record.record), isSourceCanonical: true };
    });
    this.#records = [...before.records, ...added];
    const state = { ...before.state, head };
    return { state, records: this.#records, headId: head.headId, lastSeq: head.lastSeq, sessionId: head.sessionId };
  }

  async #openTurn({ owner, leaseMs, decisions = [] }: TurnOptions): Promise<LogTurn> {
    if (this.#turn !== null)
      throw new ThroughlineError("SESSION_BUSY", "A run of this session is under way in this process.", {
        outcome: "not-applied",
        details: { key: this.ref.key },
      });
    await openSession(this.#store, this.ref, { random: this.#random, entry: this.#entry });
    const turnId = this.#random.uuid();
    const fence = (await loadExisting(this.#store, this.ref)).head.fence + 1;
    const mark = (state: string): RecordDraft => throughlineDraft("turn", { turnId, owner, fence, state });
    const leaseUntilMs = this.#clock.nowMs() + leaseMs;
    const turn = { action: "open", turnId, owner, leaseUntilMs, fence } as const;
    const decided = decisions.map((decision) => decisionDraft(decision, { turnId, nowMs: this.#clock.nowMs() }));
    await this.#write({ drafts: [mark("open"), ...decided] }, { turn });
    const renewed = renewTurn(this.#store, this.ref, { fence, leaseMs, clock: this.#clock });
    this.#turn = { fence, renewed };
    return {
      close: (state, waiting = []) =>
        this.#inOrder(async () => {
          this.#turn = null;
          await renewed.stop();
          try {
            const wait = waitingChange(waiting, { turnId, fence, nowMs: this.#clock.nowMs() });
            const change = waiting.length === 0 ? { drafts: [mark(state)] } : wait;
            await this.#write(change, { turn: { action: "close", fence } });
          } catch (error) {
            // Another run has taken the turn over, so this run has no turn to close.
            if (state === "done" || !hasErrorCode(error, "TURN_FENCED")) throw error;
          }
        }),
    };
  }
}

/**
 * A note of this kind says that summaries of older records no longer match them, so those records must be read again.
 */
function changesOlder({ record }: SourcedRecord): boolean {
  if (throughlineKind(record) !== "note") return false;
  return (record["data"] as Fields | undefined)?.["kind"] === "summary-outdated";
}
