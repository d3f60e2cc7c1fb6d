import { ThroughlineError, type Clock, type OpenTurn, type StoredRecord } from "@throughline/core";
import { turnHolder } from "@throughline/core/internal";
import { isGone } from "./begin-turn.ts";
import { waitsFor, type WhenBusy } from "./begin-when-free.ts";
import { readCallPart, type CallFacts } from "./call-record.ts";
import type { SendDenial } from "./send-denial.ts";
import type { Emit } from "./session-event.ts";
import { readTurnMark, type TurnMarkState } from "./turn-mark.ts";
import type { TurnOwners } from "./turn-owners.ts";
import type { TurnWait } from "./turn-wait.ts";
import type { WindowLog } from "./window-log.ts";

/** Describes, from the log, a turn that was begun with an idempotency key. */
export interface KeyedTurn {
  /** States how the last turn of `turnIds` ended. */
  readonly state: TurnMarkState;
  readonly denial: SendDenial | null;
  /** Holds the id of the turn and the ids of the turns that resumed it. */
  readonly turnIds: ReadonlySet<string>;
  /** Holds the records of these turns, without side records. */
  readonly records: readonly StoredRecord[];
  readonly calls: readonly CallFacts[];
}

export interface KeyedTurnOptions {
  readonly log: WindowLog;
  readonly clock: Clock;
  readonly owners: TurnOwners;
  /** Holds the ids of turns of this process that ended without being closed. */
  readonly abandoned: ReadonlySet<string>;
  readonly wait: TurnWait;
  readonly whenBusy: WhenBusy | undefined;
  readonly turnId: string;
  readonly firstSeq: number;
  readonly emit: Emit | null;
}

/** Returns true when a turn in this state has its result. A repeat then gets the same result. */
export function isAnswered(state: TurnMarkState): state is "done" | "step-limit" | "denied" {
  return state === "done" || state === "step-limit" || state === "denied";
}

/**
 * Reads an earlier turn with the idempotency key. Waits while another process still runs that turn.
 *
 * @throws {ThroughlineError} SESSION_BUSY, ABORTED, and what the store throws
 */
export async function settledKeyedTurn(options: KeyedTurnOptions): Promise<KeyedTurn> {
  const { log, clock, owners, wait, whenBusy, emit } = options;
  let isReported = false;
  for (;;) {
    const known = await readKeyedTurn(options);
    const running = log.head.turn;
    if (isAnswered(known.state) || running === null || !known.turnIds.has(running.turnId)) return known;
    if (isGone(running, options) || running.leaseUntilMs <= clock.nowMs()) return known;
    const busy = busyElsewhere(running);
    if (!waitsFor(running, owners, whenBusy)) throw busy;
    const { owner, leaseUntilMs } = running;
    if (!isReported) emit?.({ name: "turn.queued", owner, leaseUntilMs });
    isReported = true;
    await wait.pause(running, busy);
    await log.catchUp();
  }
}

async function readKeyedTurn({ log, turnId, firstSeq }: KeyedTurnOptions): Promise<KeyedTurn> {
  const turnIds = new Set([turnId]);
  const records: StoredRecord[] = [];
  const calls: CallFacts[] = [];
  let state: TurnMarkState = "open";
  let denial: SendDenial | null = null;
  let isInside = false;
  for await (const page of log.store.read(log.ref, { afterSeq: firstSeq - 1 })) {
    for (const stored of page.records) {
      const { record, side } = stored;
      const mark = readTurnMark(record);
      if (mark?.resumes !== undefined && turnIds.has(mark.resumes)) turnIds.add(mark.turnId);
      if (mark !== null) {
        isInside = mark.state === "open" && turnIds.has(mark.turnId);
        if (turnIds.has(mark.turnId)) ({ state, denial = null } = mark);
      }
      const part = readCallPart(record);
      if (part?.part === 1 && turnIds.has(part.call.turnId)) calls.push(part.call);
      if (isInside && !side) records.push(stored);
    }
  }
  return { state, denial, turnIds, records, calls };
}

function busyElsewhere(turn: OpenTurn): ThroughlineError {
  const message = `The message with this idempotency key is being answered by ${turnHolder(turn.owner)}.`;
  return new ThroughlineError("SESSION_BUSY", message, { outcome: "not-applied", details: { ...turn } });
}
