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
import { abandonedTurns } from "./abandoned-turns.ts";
import { keyedTurnId } from "./begin-turn.ts";
import { beginWhenFree, type WhenBusy } from "./begin-when-free.ts";
import { HeldTurn } from "./held-turn.ts";
import { isAnswered, settledKeyedTurn } from "./keyed-turn.ts";
import { notRunResults } from "./left-results.ts";
import { locateNamed } from "./locate-named.ts";
import { processOwners } from "./process-owners.ts";
import type { InterruptedTurn } from "./turn-outcome.ts";
import type { UnplacedEvent } from "./session-event.ts";
import type { SessionName } from "./sessions.ts";
import { TurnLog } from "./turn-log.ts";
import type { TurnOwners } from "./turn-owners.ts";
import { abortedBefore, TurnWait } from "./turn-wait.ts";

/** Options of `openTurn`. */
export interface OpenTurnOptions {
  /** Records that are stored with the opening of the turn, in one commit: usually what the user says. @default [] */
  readonly drafts?: readonly SessionDraft[];
  /**
   * Names the input of the turn, such as the id of the message that a queue delivered. A turn with the
   * same key and drafts is done once. Opened again after a crash, it resumes without storing the drafts again. Opened again
   * after its end, it is closed from the beginning and `records` holds what it stored. @default a new turn each time
   */
  readonly idempotencyKey?: string | undefined;
  /**
   * Who holds the turn, for people; 1 to 200 characters. The default also lets other processes of this machine see that
   * this one is gone; a name of your own is believed until its lease ends. @default this process
   */
  readonly owner?: string;
  /** How long the turn may go without a renewal, in milliseconds; it is renewed at a third of it. @default 30000 */
  readonly leaseMs?: number;
  /** When another turn is open: wait for it, or throw SESSION_BUSY. @default waits for turns of this process only */
  readonly whenBusy?: WhenBusy;
  /** How long to wait at most, in milliseconds; then SESSION_BUSY. @default 600000 */
  readonly waitMs?: number;
  /** Aborts the wait, and then `signal` of the turn. */
  readonly signal?: AbortSignal;
  /** The clock for the lease and for the wait. @default the system's */
  readonly clock?: Clock;
  /** Source of the turn's id and of record ids. @default the system's */
  readonly random?: RandomSource;
}

/** How a turn ended, as its program says. */
export interface CloseTurnOptions {
  /** The outcome that the turn's closing mark states. @default "done" */
  readonly outcome?: "done" | "aborted" | "failed" | "step-limit";
  /** Fields of the session's entry to set in the same commit. */
  readonly entry?: Readonly<Record<string, unknown>>;
}

/**
 * An open turn of a program with a loop of its own. It renews itself until it is closed. Nobody else can append a message
 * to the session in between.
 */
export interface OpenedTurn extends AsyncDisposable {
  /** The session in which the turn is open. */
  readonly ref: SessionRef;
  /** The id of the session behind the key when the turn was opened. */
  readonly sessionId: string;
  /** The turn's id, which its records and its marks carry. */
  readonly turnId: string;
  /** As it was when the turn was opened. */
  readonly entry: SessionEntry;
  /**
   * What a context needs, in order, with the drafts the turn was opened with: for `history.append`. Of a turn that was
   * done before: what it stored.
   */
  readonly records: readonly StoredRecord[];
  /** True after `close`, and from the beginning where a turn with this idempotency key was done before. */
  readonly isClosed: boolean;
  /** What an earlier process left open in this session; null when it left nothing. */
  readonly interruptedTurn: InterruptedTurn | null;
  /** Aborted by the caller's signal, and when another turn has taken over. Pass it to the model and the tools. */
  readonly signal: AbortSignal;
  /**
   * Stores records as part of the turn and gives them back as they are stored, for `history.append`.
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED after the end of the turn, TURN_FENCED when another turn has
   *   taken over, and what the store throws
   */
  append(drafts: readonly SessionDraft[]): Promise<readonly StoredRecord[]>;
  /** Stores the last records and ends the turn in one commit. @throws as `append` */
  close(drafts?: readonly SessionDraft[], options?: CloseTurnOptions): Promise<readonly StoredRecord[]>;
  /**
   * Ends a turn that was not closed as `aborted`, so that the next one need not wait. Never throws: where the store fails,
   * the next turn reports this one as interrupted.
   */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The kinds of the options of `openTurn`. */
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

/** The kinds of the options of `close`. */
const closeTable: OptionTable<CloseTurnOptions> = {
  outcome: optionKinds.oneOf(["done", "aborted", "failed", "step-limit"]),
  entry: optionKinds.object,
};

/**
 * Opens a turn in a session, which is created when there is none, and stores what the turn begins with in the same commit.
 *
 * @param store stays the caller's to close
 * @param session a label, a key, or an address
 * @throws {ThroughlineError} INPUT_INVALID, KEY_INVALID, SESSION_ARCHIVED, SESSION_BUSY, ABORTED, and what the store throws
 * @example
 * await using turn = await openTurn(store, "home", { drafts: [userMessage("Hello")] });
 * const history = createHistory("anthropic");
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
  // The turn is of the session that the key has now. Another one under the key fences it off.
  const log = await TurnLog.load(
    { store, ref, redact: null, random, onReplaced: () => {}, onRecord: () => {} },
    signal,
  );
  const owners = ownersFor(options.owner);
  const abandoned = abandonedTurns(store);
  const wait = new TurnWait({ clock, owners, signals: [signal], waitMs });
  let interruptedTurn: InterruptedTurn | null = null;
  const emit = (event: UnplacedEvent): void => {
    if (event.name === "turn.interrupted") ({ interruptedTurn } = event);
  };
  const leftResults = (): readonly RecordDraft[] => notRunResults(log.facts, drafts);
  const common = { log, clock, owners, abandoned, wait, whenBusy, leaseMs, leftResults, signal, emit };
  let turnId = idempotencyKey === null ? random.uuid() : keyedTurnId(log.sessionId, idempotencyKey);
  let beginning = await beginWhenFree({ ...common, turnId, drafts: () => drafts, resumes: null, idempotencyKey });
  if (beginning.kind === "replayed") {
    const firstSeq = beginning.result.records[0]?.seq ?? 1;
    const keyed = await settledKeyedTurn({ ...common, turnId, firstSeq });
    if (isAnswered(keyed.state))
      return new LoopTurn({ log, turnId, records: keyed.records, interruptedTurn, abandoned });
    const again = { turnId: random.uuid(), drafts: () => [], resumes: turnId, idempotencyKey: null };
    beginning = await beginWhenFree({ ...common, ...again });
    ({ turnId } = again);
  }
  // Only a key of the caller's could have been used before.
  if (beginning.kind === "replayed") throw new ThroughlineError("INTERNAL", `Turn ${turnId} was opened twice.`);
  const { fence } = beginning;
  const controller = new AbortController();
  const held = new HeldTurn({ log, clock, turnId, fence, leaseMs, emit: null, controller, signal });
  return new LoopTurn({ log, turnId, records: log.takeRecords(), interruptedTurn, abandoned }, held);
}

/** What a name of the caller's own is to others: nobody can look whether its process is alive. */
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
  readonly signal: AbortSignal;
  /** Null where the turn was done before. */
  readonly #held: HeldTurn | null;
  readonly #abandoned: Set<string>;
  /** An end was asked for; nothing may come behind it. */
  #isEnding: boolean;

  constructor({ log, turnId, records, interruptedTurn, abandoned }: LoopTurnParts, held: HeldTurn | null = null) {
    this.ref = log.ref;
    this.sessionId = log.sessionId;
    this.turnId = turnId;
    this.entry = log.entry;
    this.records = records;
    this.interruptedTurn = interruptedTurn;
    this.signal = held?.signal ?? new AbortController().signal;
    this.#held = held;
    this.#abandoned = abandoned;
    this.#isEnding = held === null;
  }

  get isClosed(): boolean {
    return this.#isEnding;
  }

  async append(drafts: readonly SessionDraft[]): Promise<readonly StoredRecord[]> {
    const held = this.#open();
    assertDrafts("append", drafts);
    const { stored } = await held.append(drafts);
    return stored;
  }

  async close(drafts: readonly SessionDraft[] = [], options: CloseTurnOptions = {}): Promise<readonly StoredRecord[]> {
    const held = this.#open();
    assertDrafts("close", drafts);
    assertKnownOptions("turn.close", options, closeTable);
    const { outcome = "done", entry } = options;
    this.#isEnding = true;
    try {
      const { stored } = await held.close(drafts, { state: outcome }, entry);
      return stored.slice(0, drafts.length);
    } catch (error) {
      // What was refused was not written: the program may close with something else.
      this.#isEnding = held.isCloseUnknown;
      throw error;
    } finally {
      if (this.#isEnding) this.#leave(held);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const held = this.#held;
    if (this.#isEnding || held === null) return;
    this.#isEnding = true;
    try {
      await held.close([], { state: "aborted" });
    } catch {
      // The log says that the turn is open; the next one in this process closes it as interrupted.
    } finally {
      this.#leave(held);
    }
  }

  #leave(held: HeldTurn): void {
    held.release();
    if (!held.isClosed) this.#abandoned.add(this.turnId);
  }

  #open(): HeldTurn {
    if (!this.#isEnding && this.#held !== null) return this.#held;
    throw new ThroughlineError("SESSION_CLOSED", `Turn ${this.turnId} was closed.`, { outcome: "not-applied" });
  }
}

/** Programs without types pass one draft where a list is wanted. */
function assertDrafts(method: string, drafts: unknown): void {
  if (Array.isArray(drafts)) return;
  throw new ThroughlineError("INPUT_INVALID", `turn.${method}(): \`drafts\` must be an array of records.`, {
    outcome: "not-applied",
    details: { argument: "drafts", expected: "an array", received: typeof drafts },
  });
}
