import {
  type AppendOptions,
  type OpenTurn,
  type RecordDraft,
  type SessionHead,
  type SessionRef,
  type SessionStore,
  type StoredRecord,
  ThroughlineError,
} from "@throughline/core";
import { isFields, runInSlices, sessionBusy, type Steps } from "@throughline/core/internal";
import { readRecords } from "@throughline/core/internal/node";
import {
  editSteps,
  messageTreeSteps,
  retrySteps,
  rewindSteps,
  switchSteps,
  walkSteps,
} from "@throughline/history/internal";
import { turnMarkDraft } from "./turn-mark.ts";
import { textOfContent } from "./window-facts.ts";

const mostCharacters = 80;

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
  readonly options: Required<Pick<AppendOptions, "rewindTo" | "expect" | "windowFromSeq" | "entry">>;
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
export async function planBranch(place: BranchPlace, choice: BranchChoice): Promise<BranchPlan> {
  const { head, nowMs, isGone } = place;
  if (head.turn !== null && head.turn.leaseUntilMs > nowMs && !isGone(head.turn)) throw sessionBusy(head.turn, nowMs);
  return runInSlices(choice(await recordsOf(place), head.headId));
}

/**
 * Moves the head in one commit. Nothing is appended when the head is at the place already. A turn that an ended process
 * left open is closed.
 *
 * @throws {ThroughlineError} SESSION_BUSY, APPEND_CONFLICT if the head moved meanwhile, and what the choice throws
 */
export async function moveHead(
  place: BranchPlace,
  choice: BranchChoice,
  append: (drafts: readonly RecordDraft[], options: AppendOptions) => Promise<unknown>,
): Promise<void> {
  const { drafts, options } = await planBranch(place, choice);
  const { headId, turn } = place.head;
  if (options.rewindTo === headId) return;
  const ended = turn === null ? [] : [turnMarkDraft({ turnId: turn.turnId, state: "interrupted" })];
  await append([...ended, ...drafts], {
    ...options,
    ...(turn === null ? {} : { turn: { action: "close", fence: turn.fence } }),
  });
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
