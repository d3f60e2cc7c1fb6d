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

/** Options of `createFrameworkLog`. */
export interface FrameworkLogOptions {
  /** The store of the session; stays the caller's to close. */
  readonly store: SessionStore;
  /** Where the store has the session, or will have it. */
  readonly ref: SessionRef;
  /** Fields of the entry when the session has to be created. @default none */
  readonly entry?: Readonly<Record<string, unknown>>;
  /** Which records a view has: those that a context needs, or all of the session. @default "window" */
  readonly reads?: "window" | "all";
  /** The time that records state. @default the system's */
  readonly clock?: Clock;
  /** Source of session and record ids. @default the system's */
  readonly random?: RandomSource;
}

/** What a session holds now. */
export interface LogView {
  /** Null before the session was created. */
  readonly state: SessionState | null;
  /** In order of seq: the records that a context needs, or all of them, with their sources. */
  readonly records: readonly SourcedRecord[];
  /** The last record of the branch; null before the first. */
  readonly headId: string | null;
  /** The seq of the newest record; 0 when empty. */
  readonly lastSeq: number;
  /** The id of the session behind the key. */
  readonly sessionId: string;
}

/** Where new records stand in a log. */
export interface LogPlace extends Pick<LogView, "records" | "headId" | "lastSeq"> {
  /** The time now as records state it. */
  readonly timestamp: string;
  /** A new record id. */
  readonly nextId: () => string;
}

/** What is to be appended. */
export interface LogChange {
  /** The records to append, oldest first. */
  readonly drafts: readonly AppendDraft[];
  /** Moves the head to an earlier record after the drafts. */
  readonly rewindTo?: string | null;
  /** Fields of the entry. */
  readonly entry?: Readonly<Record<string, unknown>>;
}

/** Options of a turn. */
export interface TurnOptions {
  /** Who holds it, for people. */
  readonly owner: string;
  /** How long it may give no sign of life before another may begin, in milliseconds. */
  readonly leaseMs: number;
}

/** A session behind a framework: read as it grows, and appended to at its head. */
export interface FrameworkLog {
  /** Where the store has the session. */
  readonly ref: SessionRef;
  /** A new record id. */
  nextId(): string;
  /** Where new records stand behind a view. */
  place(view: LogView): LogPlace;
  /** Reads what was added since. A session that does not exist is empty. */
  view(): Promise<LogView>;
  /**
   * Appends what `make` gives for the newest view, all or nothing. Where another writer was faster, `make` is asked again.
   * Null appends nothing. Calls run one after the other.
   * @returns the view after it
   * @throws {ThroughlineError} SESSION_BUSY, TURN_FENCED, and what the store and `make` throw
   */
  append(make: (view: LogView) => LogChange | null): Promise<LogView>;
  /**
   * Opens a turn; every append until its end belongs to it.
   * @throws {ThroughlineError} SESSION_BUSY
   */
  openTurn(options: TurnOptions): Promise<LogTurn>;
}

/** An open turn. */
interface LogTurn {
  /** Says nothing when it is another's by now. */
  close(state: "done" | "failed" | "aborted"): Promise<void>;
}

/** How often an append is made again because others were faster. */
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
  /** One call after the other. */
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
      // A redaction changed records that are known already.
      this.#forget(state.sessionId);
      await this.#readAfter(start);
    }
    const isAhead = (this.#records.at(-1)?.seq ?? 0) > lastSeq;
    const records = isAhead ? this.#records.filter(({ seq }) => seq <= lastSeq) : this.#records;
    return { state, records, headId, lastSeq, sessionId: state.sessionId };
  }

  /** False when what was read says that older records have changed. */
  async #readAfter(afterSeq: number): Promise<boolean> {
    const isFirst = this.#records.length === 0;
    const found: SourcedRecord[] = [];
    for await (const page of this.#store.read(this.ref, { afterSeq, payload: "source" })) found.push(...page.records);
    if (!isFirst && found.some(changesOlder)) return false;
    // A new list: views that were given out stay as they are.
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
        // Somebody else may have created it with records.
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

  async #write({ drafts, rewindTo, entry = {} }: LogChange, options: AppendOptions): Promise<AppendResult> {
    const turn = this.#turn;
    if (turn !== null && turn.renewed.failure !== null) throw turn.renewed.failure;
    return await appendOnce(this.#store, this.ref, drafts, {
      ...(turn === null ? {} : { turn: { action: "within", fence: turn.fence } as const }),
      ...options,
      ...(rewindTo === undefined ? {} : { rewindTo }),
      entry: { ...entry, updatedAt: this.#clock.nowMs() },
      idempotencyKey: this.#random.uuid(),
      isNewKey: true,
      return: "stored",
    });
  }

  /** The view after an append, without a read where nobody else wrote. */
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

  async #openTurn({ owner, leaseMs }: TurnOptions): Promise<LogTurn> {
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
    await this.#write({ drafts: [mark("open")] }, { turn });
    const renewed = renewTurn(this.#store, this.ref, { fence, leaseMs, clock: this.#clock });
    this.#turn = { fence, renewed };
    return {
      close: (state) =>
        this.#inOrder(async () => {
          this.#turn = null;
          await renewed.stop();
          try {
            await this.#write({ drafts: [mark(state)] }, { turn: { action: "close", fence } });
          } catch (error) {
            // Another run has begun: there is nothing of this one to close.
            if (state === "done" || !hasErrorCode(error, "TURN_FENCED")) throw error;
          }
        }),
    };
  }
}

/** Whether a record says that ones before it are not what they were. */
function changesOlder({ record }: SourcedRecord): boolean {
  if (throughlineKind(record) !== "note") return false;
  return (record["data"] as Fields | undefined)?.["kind"] === "summary-outdated";
}
