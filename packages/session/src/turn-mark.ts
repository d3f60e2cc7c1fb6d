import type { SendDenial } from "./send-denial.ts";
import { throughlineDraft, throughlineKind } from "@throughline/core/internal";
import type { RecordDraft, SessionRecord } from "@throughline/core";

/**
 * States how a turn ended. A `failed` turn throws, and the log holds the outcome. `denied` means that the send policy
 * denies answers in this session: the user's message is stored, and the model was not asked.
 */
export type TurnOutcome = "done" | "aborted" | "failed" | "step-limit" | "denied";

/** Describes a turn that a process left open when it ended. */
export interface InterruptedTurn {
  /** Holds the id of the turn that was left open. */
  readonly turnId: string;
  /** Names the process that owned the turn, as its mark states it. */
  readonly owner: string;
  /**
   * States when the turn began, by the clock of its process, in UTC milliseconds. Null when the mark is before the
   * window.
   */
  readonly sinceMs: number | null;
  /** Holds the user's message. Null when the turn was resumed, or when the message is before the window. */
  readonly text: string | null;
}

export type TurnMarkState = "open" | "done" | "aborted" | "failed" | "step-limit" | "denied" | "interrupted";

/** A side record marks the beginning and the end of a turn. */
export interface TurnMark {
  readonly turnId: string;
  readonly state: TurnMarkState;
  /**
   * Is set in an open mark, with the values that the store received. Absent with an idempotency key, because a repeat
   * must produce the same record. The closing mark of a turn that only a lease holds has a `fence` too.
   */
  readonly owner?: string;
  readonly leaseUntilMs?: number;
  readonly fence?: number;
  /** Is set in an open mark, and names the turn that this one resumes. */
  readonly resumes?: string;
  /** Is set in the mark of a failed turn, and states the reason. */
  readonly error?: { readonly code: string; readonly message: string };
  /** Is set in the mark of a denied turn, and states the source of the denial. */
  readonly denial?: SendDenial;
}

const states: ReadonlySet<unknown> = new Set([
  "open",
  "done",
  "aborted",
  "failed",
  "step-limit",
  "denied",
  "interrupted",
]);

/**
 * Owner and lease in the mark are for reports only. The store holds the valid ones, because they change while the turn
 * runs.
 */
export function turnMarkDraft(mark: TurnMark): RecordDraft {
  return throughlineDraft("turn", { ...mark });
}

/** Returns null for every other record, and for marks with an unknown state, which a newer version may have written. */
export function readTurnMark(record: SessionRecord): TurnMark | null {
  if (throughlineKind(record) !== "turn") return null;
  const data = record["data"] as Readonly<Record<string, unknown>> | null | undefined;
  if (typeof data?.["turnId"] !== "string" || !states.has(data["state"])) return null;
  // The turn id and the state are checked. The other fields are used only in reports.
  return data as unknown as TurnMark;
}
