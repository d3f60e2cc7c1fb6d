import { createHash } from "node:crypto";
import {
  hasErrorCode,
  type AppendOptions,
  type AppendResult,
  type Clock,
  type OpenTurn,
  type RecordDraft,
} from "@throughline/core";
import type { InterruptedTurn } from "./turn-mark.ts";
import { pendingApprovals, type ApprovalPlace } from "./pending-approvals.ts";
import { recoveredCharacters } from "./recover-reply.ts";
import type { Emit } from "./session-event.ts";

import { turnMarkDraft, type TurnMark } from "./turn-mark.ts";
import type { TurnOwners } from "./process-owners.ts";

/** Beginning a turn needs only this part of a session. A window log has it, and so has the head alone. */
export interface TurnPlace extends ApprovalPlace {
  append(drafts: readonly RecordDraft[], options: AppendOptions): Promise<AppendResult>;
  catchUp(): Promise<void>;
}

export interface BeginOptions {
  readonly log: TurnPlace;
  readonly clock: Clock;
  readonly owners: TurnOwners;
  /** Holds the ids of turns of this process that ended without being closed. */
  readonly abandoned: ReadonlySet<string>;
  readonly turnId: string;
  readonly leaseMs: number;
  /**
   * Creates the drafts again for each try, because the open turn may have changed. A recovered reply is stored before
   * them in the same append.
   */
  readonly drafts: (recovered: RecordDraft | null) => readonly RecordDraft[];
  /** Creates the record of the reply that a dead turn was writing. Runs before the turn is closed. */
  readonly recover: (turn: OpenTurn) => Promise<RecordDraft | null>;
  /** Creates results for calls that the last turn left open. They are stored before the drafts. @default none */
  readonly leftResults?: () => readonly RecordDraft[];
  readonly resumes: string | null;
  readonly idempotencyKey: string | null;
  readonly signal: AbortSignal | undefined;
  readonly emit: Emit | null;
  /** Refuses the append when the session has another head. @default any head */
  readonly expect?: { readonly head: string | null };
  /** Moves the head in the same commit. @default the head stays */
  readonly move?: Pick<AppendOptions, "rewindTo" | "windowFromSeq" | "entry">;
}

export type Beginning =
  | { readonly kind: "begun"; readonly fence: number; readonly result: AppendResult }
  /** The idempotency key was used before, and the log holds the earlier turn. */
  | { readonly kind: "replayed"; readonly result: AppendResult }
  | { readonly kind: "busy"; readonly turn: OpenTurn | null; readonly error: unknown };

/** Limits how often another process may win the race before the error is thrown. */
const maxTries = 64;

/**
 * Opens the turn and stores its first records in one append at the current head. After a conflict it reads the new head
 * and tries again.
 */
export async function beginTurn(options: BeginOptions): Promise<Beginning> {
  const { log } = options;
  let { expect } = options;
  for (let tries = 0; ; tries++) {
    try {
      const { headId } = log.head;
      await closeGone(options);
      // The reply that this call recovered has moved the head, and not another program.
      if (expect?.head === headId) expect = { head: log.head.headId };
      return await open(expect === undefined ? options : { ...options, expect });
    } catch (error) {
      if (!hasErrorCode(error, "SESSION_BUSY", "TURN_FENCED", "APPEND_CONFLICT") || tries >= maxTries) throw error;
      if (options.expect !== undefined && hasErrorCode(error, "APPEND_CONFLICT")) throw error;
      await log.catchUp();
      const turn = log.head.turn;
      const isRunning = hasErrorCode(error, "SESSION_BUSY") && (turn === null || !isGone(turn, options));
      if (isRunning) return { kind: "busy", turn, error };
    }
  }
}

async function open(options: BeginOptions): Promise<Beginning> {
  const { log, turnId, leaseMs, clock, owners, resumes, idempotencyKey, signal } = options;
  const fence = log.head.fence + 1;
  const leaseUntilMs = clock.nowMs() + leaseMs;
  const owner = owners.self;
  const held = idempotencyKey === null ? { owner, leaseUntilMs, fence } : {};
  const mark: TurnMark = { turnId, state: "open", ...held, ...(resumes === null ? {} : { resumes }) };
  const left = log.head.turn;
  const interruptedTurn = left === null ? null : readInterruptedTurn(log, left, options.clock.nowMs());
  // With an idempotency key every try must append the same drafts. The results of the last turn were written before.
  const recovered = left === null || idempotencyKey !== null ? null : await options.recover(left);
  const ended =
    idempotencyKey === null ? [...(left === null ? [] : [endMark(left)]), ...(options.leftResults?.() ?? [])] : [];
  const first = recovered === null ? ended : [recovered, ...ended];
  const result = await log.append([...first, turnMarkDraft(mark), ...options.drafts(recovered)], {
    turn: { action: "open", turnId, owner, leaseUntilMs, fence },
    ...(signal === undefined ? {} : { signal }),
    ...options.move,
    expect: options.expect ?? { head: log.head.headId },
    ...(idempotencyKey === null ? {} : { idempotencyKey: storeKey(idempotencyKey) }),
  });
  if (result.replayed && !isOpenedBy(result, { turnId, owner, leaseUntilMs, fence }))
    return { kind: "replayed", result };
  reportEnd(options.emit, interruptedTurn, recovered);
  return { kind: "begun", fence, result };
}

/**
 * An append is also repeated after a lost response. Such a repeat opened this turn itself and is no replay of an
 * earlier one.
 */
function isOpenedBy({ head: { turn } }: AppendResult, wanted: OpenTurn): boolean {
  return (
    turn?.turnId === wanted.turnId &&
    turn.owner === wanted.owner &&
    turn.leaseUntilMs === wanted.leaseUntilMs &&
    turn.fence === wanted.fence
  );
}

function endMark({ turnId }: OpenTurn): RecordDraft {
  return turnMarkDraft({ turnId, state: "interrupted" });
}

/**
 * The store keeps a dead owner's lease until it expires. A process that can see that the owner is gone closes the turn
 * earlier.
 */
async function closeGone(options: BeginOptions): Promise<void> {
  const { log, clock, emit, idempotencyKey } = options;
  const { turn } = log.head;
  const left = idempotencyKey === null ? [] : (options.leftResults?.() ?? []);
  if (turn === null) {
    if (left.length > 0) await log.append(left, { expect: { head: log.head.headId } });
    return;
  }
  const isOver = turn.leaseUntilMs <= clock.nowMs();
  if (!isOver && !isGone(turn, options)) return;
  // The opening append ends an expired turn in the same commit. With a key it cannot, because it must be the same at
  // every try.
  if (isOver && idempotencyKey === null) return;
  const interruptedTurn = readInterruptedTurn(log, turn, clock.nowMs());
  const recovered = await options.recover(turn);
  const reply = recovered === null ? [] : [recovered];
  await log.append([...reply, endMark(turn), ...left], { turn: { action: "close", fence: turn.fence } });
  reportEnd(emit, interruptedTurn, recovered);
}

function reportEnd(emit: Emit | null, interruptedTurn: InterruptedTurn | null, recovered: RecordDraft | null): void {
  if (interruptedTurn === null) return;
  emit?.({ name: "turn.interrupted", interruptedTurn });
  if (recovered === null) return;
  const { turnId: recoveredTurnId } = interruptedTurn;
  emit?.({ name: "turn.recovered", recoveredTurnId, characters: recoveredCharacters(recovered) });
}

/** Returns true when no process can write for the turn any more, even if its lease still runs. */
export function isGone(
  { turnId, owner }: OpenTurn,
  { owners, abandoned }: Pick<BeginOptions, "owners" | "abandoned">,
): boolean {
  return abandoned.has(turnId) || owners.stateOf(owner) === "gone";
}

export function readInterruptedTurn(place: ApprovalPlace, { turnId, owner }: OpenTurn, nowMs: number): InterruptedTurn {
  const known = place.facts.turn?.mark.turnId === turnId ? place.facts.turn : null;
  return {
    turnId,
    owner,
    sinceMs: known?.sinceMs ?? null,
    text: known?.text ?? null,
    pendingApprovals: pendingApprovals(place, nowMs),
  };
}

/** Derives the turn id from the key, so that every try with the key uses the same id. */
export function keyedTurnId(sessionId: string, idempotencyKey: string): string {
  return `key-${digest(`${sessionId} ${idempotencyKey}`)}`;
}

/** The key is hashed, because the store accepts at most 256 characters. */
function storeKey(idempotencyKey: string): string {
  return `turn-${digest(idempotencyKey)}`;
}

export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
