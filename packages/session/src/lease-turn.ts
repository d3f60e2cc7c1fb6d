import {
  appendOnce,
  type AppendOptions,
  type AppendResult,
  type Clock,
  type RandomSource,
  type RecordDraft,
  type SessionEntry,
  type SessionHead,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { defaultIdempotency, loadExisting } from "@throughline/core/internal";
import { beginTurn, keyedTurnId, type TurnPlace } from "./begin-turn.ts";
import { sharedSeq } from "./pending-approvals.ts";
import { processOwners } from "./process-owners.ts";
import { recoverReply } from "./recover-reply.ts";
import { notRunResults, readNewestCalls } from "./left-results.ts";
import type { InterruptedTurn } from "./turn-mark.ts";
import { readTurnMark, turnMarkDraft, type TurnMarkState } from "./turn-mark.ts";
import { WindowFacts } from "./window-facts.ts";

export interface LeaseTurnOptions {
  /** Names the program that holds the turn, for people. */
  readonly owner: string;
  readonly leaseMs: number;
  /** Holds the records that are stored with the opening of the turn, in one commit. */
  readonly drafts: readonly RecordDraft[];
  readonly clock: Clock;
  readonly random: RandomSource;
  /** @default a new id, derived from `idempotencyKey` when it is set */
  readonly turnId?: string;
  readonly expect?: { readonly head: string | null };
  readonly idempotencyKey?: string;
}

type LeftTurn = Omit<InterruptedTurn, "pendingApprovals">;

/**
 * Describes a turn that only a lease holds. The program of the turn runs elsewhere, and no process here renews the
 * lease.
 */
export interface LeasedTurn {
  readonly turnId: string;
  /** Is null when a turn with the same key was opened before and is over. */
  readonly fence: number | null;
  /** Is null once the turn is over. */
  readonly leaseUntilMs: number | null;
  readonly head: SessionHead;
  /** Holds the ids of the stored drafts. */
  readonly ids: readonly string[];
  /** Is true when an earlier request opened the turn. */
  readonly replayed: boolean;
  /** Describes the turn that an earlier program left open in the session. */
  readonly interruptedTurn: LeftTurn | null;
}

/**
 * Opens a turn for a program that holds no handle of the store, with the marks that every turn has. Reads the head of
 * the session. After a turn that was never closed it also reads the newest reply, to find calls without results.
 *
 * @throws {ThroughlineError} SESSION_BUSY, APPEND_CONFLICT for another head than `expect` names, and what the store
 *   throws
 */
export async function leaseTurn(store: SessionStore, ref: SessionRef, options: LeaseTurnOptions): Promise<LeasedTurn> {
  const { owner, leaseMs, drafts, clock, random, expect, idempotencyKey = null } = options;
  const place = new HeadPlace(store, ref, random, await loadExisting(store, ref));
  await place.readCalls();
  const made = idempotencyKey === null ? random.uuid() : keyedTurnId(place.head.sessionId, idempotencyKey);
  const { turnId = made } = options;
  const held = place.head.turn;
  const isOwn = held !== null && held.turnId === turnId && held.owner === owner;
  // The response was lost, and the turn is open already. With a key the store detects the repeat itself.
  if (isOwn && options.turnId !== undefined && idempotencyKey === null)
    return { ...leaseOf(place.head, turnId), ids: [], replayed: true, interruptedTurn: null };
  let interruptedTurn: LeftTurn | null = null;
  const { self: _self, ...owners } = processOwners();
  const beginning = await beginTurn({
    log: place,
    clock,
    owners: { ...owners, self: owner },
    abandoned: new Set(),
    turnId,
    leaseMs,
    drafts: () => drafts,
    recover: (turn) => recoverReply(store, ref, turn, null),
    // With a key the results are stored before the turn is opened. That would move the head that the caller expects.
    leftResults: () =>
      expect !== undefined && idempotencyKey !== null
        ? []
        : notRunResults(place.facts, { nowMs: clock.nowMs() }, drafts),
    resumes: null,
    idempotencyKey,
    signal: undefined,
    emit: (event) => {
      if (event.name !== "turn.interrupted") return;
      const { pendingApprovals: _pending, ...left } = event.interruptedTurn;
      interruptedTurn = left;
    },
    ...(expect === undefined ? {} : { expect }),
  });
  if (beginning.kind === "busy") throw beginning.error;
  const { records, head, replayed } = beginning.result;
  // The append stores the marks before the drafts.
  const ids = records.map(({ id }) => id).slice(records.length - drafts.length);
  return { ...leaseOf(head, turnId), ids, replayed, interruptedTurn };
}

function leaseOf(head: SessionHead, turnId: string): Pick<LeasedTurn, "turnId" | "fence" | "leaseUntilMs" | "head"> {
  const held = head.turn?.turnId === turnId ? head.turn : null;
  return { turnId, head, fence: held?.fence ?? null, leaseUntilMs: held?.leaseUntilMs ?? null };
}

export interface CloseLeasedTurnOptions {
  readonly fence: number;
  readonly drafts: readonly RecordDraft[];
  readonly outcome: Exclude<TurnMarkState, "open" | "interrupted" | "denied" | "waiting">;
  readonly entry?: Readonly<Record<string, unknown>>;
  readonly idempotencyKey?: string;
}

/**
 * Ends a turn that `leaseTurn` opened. The last records and the closing mark are one commit.
 *
 * @throws {ThroughlineError} TURN_FENCED for a turn that is over, and what the store throws
 */
export async function closeLeasedTurn(
  store: SessionStore,
  ref: SessionRef,
  { fence, drafts, outcome, entry, idempotencyKey }: CloseLeasedTurnOptions,
): Promise<{ readonly turnId: string; readonly result: AppendResult; readonly ids: readonly string[] }> {
  const { turn } = (await loadExisting(store, ref)).head;
  const isRepeat = turn?.fence !== fence && idempotencyKey !== undefined;
  const turnId = turn?.fence === fence ? turn.turnId : isRepeat ? await closedTurn(store, ref, fence) : null;
  // An unknown turn gets no mark, because the store refuses the fence anyway.
  const marks = turnId === null ? [] : [turnMarkDraft({ turnId, state: outcome, fence })];
  const result = await store.append(ref, [...drafts, ...marks], {
    turn: { action: "close", fence },
    ...(entry === undefined ? {} : { entry }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  });
  return { turnId: turnId ?? "", result, ids: result.records.slice(0, drafts.length).map(({ id }) => id) };
}

/**
 * Finds the turn that ended with this fence, so that a repeated close is the same append. The search goes back as far
 * as the store remembers idempotency keys.
 */
async function closedTurn(store: SessionStore, ref: SessionRef, fence: number): Promise<string | null> {
  for await (const { records } of store.read(ref, {
    order: "descending",
    limit: defaultIdempotency.rememberedAppends,
  })) {
    for (const { record } of records) {
      const mark = readTurnMark(record);
      if (mark !== null && mark.state !== "open" && mark.fence === fence) return mark.turnId;
    }
  }
  return null;
}

/** Opening a turn by lease needs only the head of the session, so the window is not read. */
class HeadPlace implements TurnPlace {
  /** Holds the facts from the newest reply on. */
  facts: WindowFacts = new WindowFacts();
  readonly #store: SessionStore;
  readonly #ref: SessionRef;
  readonly #random: RandomSource;
  #head: SessionHead;
  #entry: SessionEntry;

  constructor(store: SessionStore, ref: SessionRef, random: RandomSource, { head, entry }: SessionState) {
    this.#store = store;
    this.#ref = ref;
    this.#random = random;
    this.#head = head;
    this.#entry = entry;
  }

  get entry(): SessionEntry {
    return this.#entry;
  }

  get head(): SessionHead {
    return this.#head;
  }

  async append(drafts: readonly RecordDraft[], options: AppendOptions): Promise<AppendResult> {
    const { idempotencyKey = this.#random.uuid() } = options;
    const isNewKey = options.idempotencyKey === undefined;
    const result = await appendOnce(this.#store, this.#ref, drafts, { ...options, idempotencyKey, isNewKey });
    this.#head = result.head;
    return isNewKey ? { ...result, replayed: false } : result;
  }

  async catchUp(): Promise<void> {
    const { head, entry } = await loadExisting(this.#store, this.#ref);
    this.#head = head;
    this.#entry = entry;
    await this.readCalls();
  }

  /**
   * A turn that was never closed, or whose calls wait for a decision, may have left calls that did not run. So may the
   * turn at which a session was forked.
   */
  async readCalls(): Promise<void> {
    const { turn, lastSeq } = this.#head;
    const isNewFork = lastSeq > 0 && sharedSeq(this.#entry) === lastSeq;
    const mayHaveCalls = turn !== null || isNewFork || this.#entry["waiting"] !== undefined;
    this.facts = mayHaveCalls ? await readNewestCalls(this.#store, this.#ref) : new WindowFacts();
  }
}
