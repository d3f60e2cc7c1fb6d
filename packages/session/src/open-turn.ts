import {
  type Clock,
  openSession,
  type RandomSource,
  type RecordDraft,
  type SessionEntry,
  type SessionRef,
  type SessionStore,
  type StoredRecord,
  ThroughlineError,
} from "@throughline/core";
import {
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  type SessionDraft,
  systemClock,
  systemRandom,
} from "@throughline/core/internal";
import { acquireTurn } from "./acquire.ts";
import { keyedTurnId } from "./begin-turn.ts";
import { notRunResults } from "./left-results.ts";
import { locateNamed } from "./locate-named.ts";
import { abandonedTurns, processOwners, type TurnOwners } from "./process-owners.ts";
import type { InterruptedTurn } from "./turn-mark.ts";
import type { UnplacedEvent } from "./session-event.ts";
import type { SessionName } from "./sessions.ts";
import { TurnLog } from "./turn-log.ts";
import { TurnLease } from "./turn-lease.ts";
import { abortedBefore, TurnWait } from "./turn-wait.ts";

/** Sets the input, the lease and the waiting of `openTurn`. */
export interface OpenTurnOptions {
  /**
   * Holds records that are stored with the opening of the turn, in one commit; usually the message of the user.
   * @default []
   */
  readonly drafts?: readonly SessionDraft[] | undefined;
  /**
   * Identifies the input of the turn, such as the id of a message that a queue delivered. A turn with the same key and
   * drafts is executed once. After a crash, the same key resumes the turn and does not store the drafts again. After
   * its end, the same key returns a closed turn whose `records` hold what it stored.
   * @default a new turn each time
   */
  readonly idempotencyKey?: string | undefined;
  /**
   * Names the holder of the turn, for people; 1 to 200 characters. With the default name, other processes of this
   * machine can see that the process is gone. A custom name counts as alive until its lease ends.
   * @default this process
   */
  readonly owner?: string | undefined;
  /** Sets the length of the lease, in milliseconds. The lease is renewed after each third of it. @default 30000 */
  readonly leaseMs?: number | undefined;
  /**
   * States whether to wait for another open turn, or to throw SESSION_BUSY.
   * @default waits for turns of this process only
   */
  readonly whenBusy?: "queue" | "reject" | undefined;
  /** Limits the wait, in milliseconds; then SESSION_BUSY. @default 600000 */
  readonly waitMs?: number | undefined;
  /** Aborts the wait, and later the `signal` of the turn. */
  readonly signal?: AbortSignal | undefined;
  /** Supplies the time of the lease and the wait. @default the system clock */
  readonly clock?: Clock | undefined;
  /** Generates the turn id and the record ids. @default the system's random source */
  readonly random?: RandomSource | undefined;
}

/** States how a turn ended. */
interface CloseTurnOptions {
  /** Sets the outcome in the turn's closing mark. @default "done" */
  readonly outcome?: "done" | "aborted" | "failed" | "step-limit" | undefined;
  /** Sets fields of the session entry in the same commit. */
  readonly entry?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Holds an open turn of a program with its own loop. The lease is renewed until the turn is closed. No other process
 * can append a message to the session meanwhile.
 */
export interface OpenedTurn extends AsyncDisposable {
  /** Names the session in which the turn is open. */
  readonly ref: SessionRef;
  /** Holds the id of the session that the key referred to when the turn was opened. */
  readonly sessionId: string;
  /** Holds the turn id, which the records and the marks of the turn carry. */
  readonly turnId: string;
  /** Holds the session entry at the time of the opening. */
  readonly entry: SessionEntry;
  /**
   * Holds the records that a context needs, in order, including the drafts of the opening; pass them to
   * `history.append`. For a turn that was executed before, holds the records that it stored.
   */
  readonly records: readonly StoredRecord[];
  /**
   * Returns the bytes of a file to which `records`, or the result of `append`, refer: pass it to `createHistory`. The
   * bytes were read with the records, within the bounds of `runTurn`.
   * @example
   * const history = createHistory("anthropic", { files: turn.files });
   */
  readonly files: (fileId: string) => Uint8Array | null | undefined;
  /** Is true after `close`. True from the beginning when a turn with this idempotency key was executed before. */
  readonly isClosed: boolean;
  /** Describes the turn that an earlier process left open in this session; null when there was none. */
  readonly interruptedTurn: InterruptedTurn | null;
  /**
   * Aborts with the caller's signal, and when another turn has taken over. Pass this signal to the model and the tools.
   */
  readonly signal: AbortSignal;
  /**
   * Stores records as part of the turn and returns them in stored form, for `history.append`.
   *
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED after the end of the turn, TURN_FENCED when another turn
   *   has taken over, and what the store throws
   */
  append(drafts: readonly SessionDraft[]): Promise<readonly StoredRecord[]>;
  /** Stores the last records and ends the turn in one commit. @throws as `append` */
  close(drafts?: readonly SessionDraft[], options?: CloseTurnOptions): Promise<readonly StoredRecord[]>;
  /**
   * Ends a turn that was not closed as `aborted`, so that the next turn need not wait. Never throws: if the store
   * fails, the next turn reports this turn as interrupted.
   */
  [Symbol.asyncDispose](): Promise<void>;
}

export const openTurnTable: OptionTable<OpenTurnOptions> = {
  drafts: optionKinds.list,
  idempotencyKey: optionKinds.filledText,
  owner: optionKinds.filledText,
  leaseMs: optionKinds.integer({ min: 100, max: 86_400_000 }),
  whenBusy: optionKinds.oneOf(["queue", "reject"]),
  waitMs: optionKinds.number({ min: 0 }),
  signal: optionKinds.signal,
  clock: optionKinds.objectWith("nowMs", "sleep"),
  random: optionKinds.objectWith("uuid", "uint32"),
};

const closeTable: OptionTable<CloseTurnOptions> = {
  outcome: optionKinds.oneOf(["done", "aborted", "failed", "step-limit"]),
  entry: optionKinds.object,
};

/**
 * Opens a turn in a session and stores its first records in the same commit. A missing session is created.
 *
 * @param store the store; the caller closes it
 * @param session a label, a key, or an address
 *
 * @throws {ThroughlineError} INPUT_INVALID, KEY_INVALID, SESSION_ARCHIVED, SESSION_BUSY, ABORTED, and what the store
 * throws
 * @example
 * await using turn = await openTurn(store, "home", { drafts: [userMessage("Hello")] });
 * const history = createHistory("anthropic", { files: turn.files });
 * history.append(turn.records);
 * const reply = await client.messages.create({ model, max_tokens: 1024, messages: history.render().messages });
 * await turn.close([recordFromReply(reply)]);
 */
export async function openTurn(
  store: SessionStore,
  session: SessionName,
  options: OpenTurnOptions = {},
): Promise<OpenedTurn> {
  assertKnownOptions("openTurn", options, openTurnTable);
  const { drafts = [], idempotencyKey = null, leaseMs = 30_000, whenBusy, waitMs, signal } = options;
  const { clock = systemClock, random = systemRandom } = options;
  if (signal?.aborted === true) throw abortedBefore(signal);
  const { ref, label } = await locateNamed("openTurn", store, session, signal);
  if (ref.archiveId !== undefined)
    throw new ThroughlineError("SESSION_ARCHIVED", "An archived session takes no turns.", { details: { ...ref } });
  await openSession(store, ref, { random, entry: label === null ? {} : { label } });
  // The turn belongs to the session that the key refers to now. If a new session takes the key, its fence ends this
  // turn.
  const log = await TurnLog.load(
    { store, ref, redact: null, random, onReplaced: () => {}, onRecord: () => {} },
    signal,
  );
  const owners = ownersFor(options.owner);
  const abandoned = abandonedTurns(store);
  let interruptedTurn: InterruptedTurn | null = null;
  const emit = (event: UnplacedEvent): void => {
    if (event.name === "turn.interrupted") ({ interruptedTurn } = event);
  };
  const leftResults = (): readonly RecordDraft[] => notRunResults(log.facts, { nowMs: clock.nowMs() }, drafts);
  const acquired = await acquireTurn({
    log,
    shared: { clock, owners, abandoned, random },
    wait: new TurnWait({ clock, owners, signals: [signal], waitMs, whenBusy, emit }),
    leaseMs,
    signal,
    emit,
    turnId: idempotencyKey === null ? random.uuid() : keyedTurnId(log.sessionId, idempotencyKey),
    idempotencyKey,
    resumes: null,
    drafts: () => drafts,
    leftResults,
    resuming: { drafts: () => [], leftResults },
  });
  const { turnId } = acquired;
  const parts = { log, turnId, interruptedTurn, abandoned };
  if (acquired.kind === "answered") {
    await log.loadFiles(acquired.keyed.records);
    return new LoopTurn({ ...parts, records: acquired.keyed.records });
  }
  const controller = new AbortController();
  const { fence } = acquired;
  const lease = new TurnLease({ log, clock, turnId, fence, leaseMs, emit: null, controller, signal });
  return new LoopTurn({ ...parts, records: log.takeRecords() }, lease);
}

/**
 * Other processes cannot check whether the process behind a custom name is alive, so only this process recognizes it.
 */
function ownersFor(owner: string | undefined): TurnOwners {
  const processes = processOwners();
  if (owner === undefined) return processes;
  return { self: owner, stateOf: (name) => (name === owner ? "self" : processes.stateOf(name)) };
}

interface LoopTurnParts {
  readonly log: TurnLog;
  readonly turnId: string;
  readonly records: readonly StoredRecord[];
  readonly interruptedTurn: InterruptedTurn | null;
  readonly abandoned: Set<string>;
}

class LoopTurn implements OpenedTurn {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly turnId: string;
  readonly entry: SessionEntry;
  readonly records: readonly StoredRecord[];
  readonly interruptedTurn: InterruptedTurn | null;
  readonly files: OpenedTurn["files"];
  readonly signal: AbortSignal;
  /** Is null when the turn was executed before. */
  readonly #lease: TurnLease | null;
  readonly #abandoned: Set<string>;
  /** Is true after the end was requested. No record may follow the end. */
  #isEnding: boolean;

  constructor({ log, turnId, records, interruptedTurn, abandoned }: LoopTurnParts, lease: TurnLease | null = null) {
    this.ref = log.ref;
    this.sessionId = log.sessionId;
    this.turnId = turnId;
    this.entry = log.entry;
    this.records = records;
    this.interruptedTurn = interruptedTurn;
    this.files = (fileId) => log.fileOf(fileId);
    this.signal = lease?.signal ?? new AbortController().signal;
    this.#lease = lease;
    this.#abandoned = abandoned;
    this.#isEnding = lease === null;
  }

  get isClosed(): boolean {
    return this.#isEnding;
  }

  async append(drafts: readonly SessionDraft[]): Promise<readonly StoredRecord[]> {
    const lease = this.#open();
    assertDrafts("append", drafts);
    const { stored } = await lease.append(drafts);
    return stored;
  }

  async close(drafts: readonly SessionDraft[] = [], options: CloseTurnOptions = {}): Promise<readonly StoredRecord[]> {
    const lease = this.#open();
    assertDrafts("close", drafts);
    assertKnownOptions("turn.close", options, closeTable);
    const { outcome = "done", entry } = options;
    this.#isEnding = true;
    try {
      const { stored } = await lease.close(drafts, { state: outcome }, entry);
      return stored.slice(0, drafts.length);
    } catch (error) {
      // A refused close wrote nothing, so the program may close with other records.
      this.#isEnding = lease.isCloseUnknown;
      throw error;
    } finally {
      if (this.#isEnding) this.#leave(lease);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const lease = this.#lease;
    if (this.#isEnding || lease === null) return;
    this.#isEnding = true;
    try {
      await lease.close([], { state: "aborted" });
    } catch {
      // The log still states that the turn is open. The next turn in this process closes it as interrupted.
    } finally {
      this.#leave(lease);
    }
  }

  #leave(lease: TurnLease): void {
    lease.release();
    if (!lease.isClosed) this.#abandoned.add(this.turnId);
  }

  #open(): TurnLease {
    if (!this.#isEnding && this.#lease !== null) return this.#lease;
    throw new ThroughlineError("SESSION_CLOSED", `Turn ${this.turnId} was closed.`, { outcome: "not-applied" });
  }
}

/** Programs without type checks may pass a single draft instead of a list. */
function assertDrafts(method: string, drafts: unknown): void {
  if (Array.isArray(drafts)) return;
  throw new ThroughlineError("INPUT_INVALID", `turn.${method}(): \`drafts\` must be an array of records.`, {
    outcome: "not-applied",
    details: { argument: "drafts", expected: "an array", received: typeof drafts },
  });
}
