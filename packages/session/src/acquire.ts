import { ThroughlineError, type OpenTurn, type RecordDraft } from "@throughline/core";
import { isUnknown, turnHolder } from "@throughline/core/internal";
import { beginTurn, isGone, type Beginning, type BeginOptions } from "./begin-turn.ts";
import { type AnsweredTurn, isAnswered, type KeyedTurn, readKeyedTurn } from "./keyed-turn.ts";
import { recoverReply } from "./recover-reply.ts";
import type { SharedParts } from "./shared-parts.ts";
import type { TurnWait } from "./turn-wait.ts";
import type { WindowLog } from "./window-log.ts";

/** Creates the records of a turn's beginning, again for each try. */
export type OpeningDrafts = Required<Pick<BeginOptions, "drafts" | "leftResults">>;

export interface AcquireOptions
  extends
    Pick<BeginOptions, "turnId" | "leaseMs" | "resumes" | "idempotencyKey" | "signal" | "emit" | "expect" | "move">,
    OpeningDrafts {
  readonly log: WindowLog;
  readonly shared: Pick<SharedParts, "clock" | "owners" | "abandoned" | "random">;
  readonly wait: TurnWait;
  /** Creates the records of a turn that resumes the earlier one with the idempotency key. */
  readonly resuming: OpeningDrafts;
}

export type AcquiredTurn =
  | {
      readonly kind: "begun";
      readonly turnId: string;
      readonly fence: number;
      readonly resumes: string | null;
      /** Records that were read before this one belong to other turns. */
      readonly firstSeq: number;
    }
  /** An earlier turn with the idempotency key has a result. */
  | { readonly kind: "answered"; readonly turnId: string; readonly keyed: AnsweredTurn };

/**
 * Opens the turn, and first waits for a turn that is open elsewhere when the caller wants that. A turn that its
 * idempotency key names and that has no result is resumed.
 *
 * @throws {ThroughlineError} SESSION_BUSY, ABORTED, and what the store throws
 */
export async function acquireTurn(options: AcquireOptions): Promise<AcquiredTurn> {
  const { turnId, shared, resuming } = options;
  const beginning = await beginWhenFree(options);
  if (beginning.kind === "begun") return begun(options, beginning);
  const keyed = await settledKeyedTurn(options, beginning.result.records[0]?.seq ?? 1);
  if (isAnswered(keyed)) return { kind: "answered", turnId, keyed };
  const next = { ...options, ...resuming, turnId: shared.random.uuid(), resumes: turnId, idempotencyKey: null };
  const again = await beginWhenFree(next);
  // This turn id is new, so a replay is only possible with the caller's key.
  if (again.kind === "replayed") throw new ThroughlineError("INTERNAL", `Turn ${next.turnId} was opened twice.`);
  return begun(next, again);
}

function begun(
  { turnId, resumes }: AcquireOptions,
  { fence, result }: Extract<Beginning, { kind: "begun" }>,
): AcquiredTurn {
  return { kind: "begun", turnId, fence, resumes, firstSeq: result.records[0]?.seq ?? 0 };
}

async function beginWhenFree(options: AcquireOptions): Promise<Exclude<Beginning, { kind: "busy" }>> {
  for (;;) {
    const beginning = await beginOrAbandon(options);
    if (beginning.kind !== "busy") return beginning;
    await options.wait.elsewhere(beginning.turn, beginning.error);
  }
}

/**
 * When the result of the opening append is unknown, the turn may be open without a process that runs it. It is recorded
 * as abandoned, so that it does not block later turns.
 */
async function beginOrAbandon({ shared, ...options }: AcquireOptions): Promise<Beginning> {
  const { abandoned } = shared;
  const { turnId } = options;
  try {
    const { log, emit } = options;
    const recover = (turn: OpenTurn): Promise<RecordDraft | null> => recoverReply(log.store, log.ref, turn, emit);
    const beginning = await beginTurn({ ...options, ...shared, recover });
    if (beginning.kind === "begun") abandoned.delete(turnId);
    return beginning;
  } catch (error) {
    if (isUnknown(error)) abandoned.add(turnId);
    throw error;
  }
}

/** Reads an earlier turn with the idempotency key. Waits while another process still runs that turn. */
async function settledKeyedTurn({ log, shared, wait, turnId }: AcquireOptions, firstSeq: number): Promise<KeyedTurn> {
  for (;;) {
    const known = await readKeyedTurn(log, turnId, firstSeq);
    const running = log.head.turn;
    if (isAnswered(known) || running === null || !known.turnIds.has(running.turnId)) return known;
    if (isGone(running, shared) || running.leaseUntilMs <= shared.clock.nowMs()) return known;
    await wait.elsewhere(running, busyElsewhere(running));
    await log.catchUp();
  }
}

function busyElsewhere(turn: OpenTurn): ThroughlineError {
  const message = `The message with this idempotency key is being answered by ${turnHolder(turn.owner)}.`;
  return new ThroughlineError("SESSION_BUSY", message, { outcome: "not-applied", details: { ...turn } });
}
