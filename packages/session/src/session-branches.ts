import {
  appendOnce,
  type AppendOptions,
  type Clock,
  type OpenTurn,
  type RecordDraft,
  type SessionHead,
  type SessionRef,
  type SessionStore,
  type StoredRecord,
  ThroughlineError,
} from "@throughline/core";
import { isFields, loadExisting, runInSlices, sessionBusy, type Steps, systemRandom } from "@throughline/core/internal";
import { readRecords } from "@throughline/core/internal/node";
import {
  editSteps,
  messageTreeSteps,
  retrySteps,
  rewindSteps,
  switchSteps,
  walkSteps,
} from "@throughline/history/internal";
import { leftResults } from "./left-results.ts";
import type { CallState } from "./open-calls.ts";
import { processOwners } from "./process-owners.ts";
import { recoverReply } from "./recover-reply.ts";
import { turnMarkDraft } from "./turn-mark.ts";
import { textOfContent, WindowFacts } from "./window-facts.ts";

const mostCharacters = 80;

const leftBehind = "The conversation continued on another branch before anybody decided. The call was not run.";

/** Describes one of the messages that follow the same message, and the branch that it begins. */
export interface SessionBranch {
  /** Holds the id of the message. `switchTo` takes it. */
  readonly recordId: string;
  /** Holds the seq of the message. */
  readonly seq: number;
  /** States when the message was written, in UTC milliseconds; null if its record states no time. */
  readonly tsMs: number | null;
  /** States who wrote the message; null for a message that was redacted. */
  readonly role: "user" | "assistant" | null;
  /** Holds the first words of the message, at most 80 characters. Empty for a message without text. */
  readonly text: string;
  /** Holds the id of the newest record behind the message, to which `switchTo` returns. */
  readonly newestId: string;
  /** States when that record was written, in UTC milliseconds; null if it states no time. */
  readonly newestTsMs: number | null;
  /** Is true for the message on the branch of the head. */
  readonly isCurrent: boolean;
}

/** Holds what planning a move of the head needs. */
export interface BranchPlace {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  readonly head: SessionHead;
  readonly nowMs: number;
  readonly signal: AbortSignal;
  /** Returns true when no process can write for the turn any more, even if its lease still runs. */
  readonly isGone: (turn: OpenTurn) => boolean;
}

/** Chooses the place to which the head moves. */
export type BranchChoice = (records: readonly StoredRecord[], headId: string | null) => Steps<BranchPlan>;

interface BranchPlan {
  readonly drafts: readonly RecordDraft[];
  readonly options: {
    readonly rewindTo: string | null;
    readonly expect: { readonly head: string | null };
    readonly windowFromSeq: number;
    readonly entry: Readonly<Record<string, unknown>>;
  };
  /** Lists the main records of the current branch that the head leaves, oldest first. */
  readonly leftIds: readonly string[];
}

/** Holds a plan with results for calls that did not run. They belong to the branch that the head leaves. */
interface PlannedBranch extends BranchPlan {
  readonly leftResults: readonly RecordDraft[];
}

/** Chooses a main record of any branch; null means before the first record. */
export function rewound(recordId: string | null): BranchChoice {
  return (records, headId) => rewindSteps(records, headId, recordId);
}

/** Chooses the newest record behind a main record. */
export function switched(recordId: string): BranchChoice {
  return (records, headId) => switchSteps(records, headId, recordId);
}

/** Chooses the place before a message of the user. */
export function beforeMessage(recordId: string): BranchChoice {
  return (records, headId) => editSteps(records, headId, recordId);
}

/** Chooses the newest message of the user on the current branch. @throws {ThroughlineError} INPUT_INVALID */
export function* lastMessage(records: readonly StoredRecord[], headId: string | null): Steps<BranchPlan> {
  const plan = yield* retrySteps(records, headId);
  if (plan !== null) return plan;
  throw new ThroughlineError("INPUT_INVALID", "There is no message of the user to answer again.", {
    outcome: "not-applied",
  });
}

/** @throws {ThroughlineError} SESSION_BUSY, and what the choice throws */
export async function planBranch(place: BranchPlace, choice: BranchChoice): Promise<PlannedBranch> {
  const { head, nowMs, isGone } = place;
  if (head.turn !== null && head.turn.leaseUntilMs > nowMs && !isGone(head.turn)) throw sessionBusy(head.turn, nowMs);
  return runInSlices(planSteps(await recordsOf(place), head.headId, choice));
}

function* planSteps(
  records: readonly StoredRecord[],
  headId: string | null,
  choice: BranchChoice,
): Steps<PlannedBranch> {
  const plan = yield* choice(records, headId);
  const facts = new WindowFacts();
  for (const record of records) {
    yield;
    facts.take(record);
  }
  // A later turn on the branch would otherwise read that the calls may have run.
  const isLeft = (state: CallState): boolean => state !== "may-have-run";
  return { ...plan, leftResults: leftResults(facts, { isLeft, undecided: leftBehind }) };
}

/**
 * Moves the head in one commit, and returns the ids of the main records that it leaves. Nothing is appended when the
 * head is at the place already. A turn that an ended process left open is closed. Calls that wait for a decision get a
 * result that says so.
 *
 * @throws {ThroughlineError} SESSION_BUSY, APPEND_CONFLICT if the head moved meanwhile, and what the choice throws
 */
export async function moveHead(
  place: BranchPlace,
  choice: BranchChoice,
  append: (drafts: readonly RecordDraft[], options: AppendOptions) => Promise<unknown>,
): Promise<readonly string[]> {
  const { drafts, options, leftResults: results, leftIds } = await planBranch(place, choice);
  const { headId, turn } = place.head;
  if (options.rewindTo === headId) return leftIds;
  const recovered = turn === null ? null : await recoverReply(place.store, place.ref, turn, null);
  const reply = recovered === null ? [] : [recovered];
  const ended = turn === null ? [] : [turnMarkDraft({ turnId: turn.turnId, state: "interrupted" })];
  await append([...reply, ...ended, ...results, ...drafts], {
    ...options,
    ...(turn === null ? {} : { turn: { action: "close", fence: turn.fence } }),
  });
  return leftIds;
}

/** Holds a store with what moving the head of a session there needs, for programs without a handle of the session. */
interface StoredBranchPlace extends Pick<BranchPlace, "store" | "ref" | "signal"> {
  readonly clock: Clock;
}

/** Reads the place of the head from the store. @throws {ThroughlineError} SESSION_NOT_FOUND */
export async function readBranchPlace({ clock, ...given }: StoredBranchPlace): Promise<BranchPlace> {
  const { head } = await loadExisting(given.store, given.ref);
  const isGone = ({ owner }: OpenTurn): boolean => processOwners().stateOf(owner) === "gone";
  return { ...given, head, nowMs: clock.nowMs(), isGone };
}

/** Moves the head like `moveHead`, without a handle of the session. Returns the ids of the records that it leaves. */
export function moveStoredHead(place: BranchPlace, choice: BranchChoice): Promise<readonly string[]> {
  const { store, ref, signal } = place;
  const once = { signal, idempotencyKey: systemRandom.uuid(), isNewKey: true };
  return moveHead(place, choice, (drafts, options) => appendOnce(store, ref, drafts, { ...options, ...once }));
}

/**
 * Lists the messages that follow the same message as this one, in order of seq.
 * @throws {ThroughlineError} RECORD_NOT_FOUND for a record that is no message of a user or a model
 */
export async function listSiblings(
  place: Omit<BranchPlace, "nowMs" | "isGone">,
  recordId: string,
): Promise<readonly SessionBranch[]> {
  const records = await recordsOf(place);
  const tree = await runInSlices(messageTreeSteps(records));
  const { indexes } = await runInSlices(walkSteps(records, place.head.headId));
  const path = new Set(indexes.map((index) => records[index]?.seq));
  const asked = records.findLast(({ id, side }) => id === recordId && !side);
  const siblings = asked === undefined ? [] : tree.siblings(asked.seq);
  if (siblings.length === 0)
    throw new ThroughlineError("RECORD_NOT_FOUND", `No message of a user or a model has the id ${recordId}.`, {
      outcome: "not-applied",
      details: { ...place.ref, recordId },
    });
  return siblings.map((stored) => {
    const newest = tree.newest(stored.seq) ?? stored;
    return {
      recordId: stored.id,
      seq: stored.seq,
      tsMs: stored.tsMs,
      ...firstWords(stored),
      newestId: newest.id,
      newestTsMs: newest.tsMs,
      isCurrent: path.has(stored.seq),
    };
  });
}

async function recordsOf({
  store,
  ref,
  head,
  signal,
}: Pick<BranchPlace, "store" | "ref" | "head" | "signal">): Promise<readonly StoredRecord[]> {
  const records = await readRecords(store, ref, signal);
  return records.filter(({ seq }) => seq <= head.lastSeq);
}

function firstWords({ record }: StoredRecord): Pick<SessionBranch, "role" | "text"> {
  const { message } = record;
  if (!isFields(message)) return { role: null, text: "" };
  const text = textOfContent(message["content"]).trim().slice(0, mostCharacters).toWellFormed();
  return { role: message["role"] === "user" ? "user" : "assistant", text };
}
