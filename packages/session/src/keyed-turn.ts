import type { StoredRecord } from "@throughline/core";
import { readCallPart, type CallFacts } from "./call-record.ts";
import type { SendDenial } from "./send-denial.ts";
import { readTurnMark, type TurnMarkState } from "./turn-mark.ts";
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

/** Describes a keyed turn that has its result. A repeat then gets the same result. */
export interface AnsweredTurn extends KeyedTurn {
  readonly state: "done" | "step-limit" | "denied" | "waiting";
}

const answered: ReadonlySet<TurnMarkState> = new Set(["done", "step-limit", "denied", "waiting"]);

export function isAnswered(keyed: KeyedTurn): keyed is AnsweredTurn {
  return answered.has(keyed.state);
}

export async function readKeyedTurn(
  log: Pick<WindowLog, "store" | "ref">,
  turnId: string,
  firstSeq: number,
): Promise<KeyedTurn> {
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
