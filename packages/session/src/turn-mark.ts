import type { SendDenial } from "./send-denial.ts";
import { throughlineDraft, throughlineKind } from "@throughline/core/internal";
import type { RecordDraft, SessionRecord } from "@throughline/core";

/**
 * States how a turn ended. A `failed` turn throws, and the log holds the outcome. `denied` means that the send policy
 * denies answers in this session: the user's message is stored, and the model was not asked. `waiting` means that calls
 * of a tool wait for a decision; `resume` continues.
 */
export type TurnOutcome = "done" | "aborted" | "failed" | "step-limit" | "denied" | "waiting";

/** Describes a call of a tool that waits for a decision. */
export interface PendingApproval {
  /** Holds the id of the call, as the model stated it. */
  readonly callId: string;
  /** Holds the name of the tool. */
  readonly tool: string;
  /** Holds the arguments of the call. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Holds the facts for the person who decides, as `approveTool` gave them with `wait`. */
  readonly facts: Readonly<Record<string, unknown>>;
  /** States when the question was asked, or else when the call was stored, in UTC milliseconds. */
  readonly askedAtMs: number | null;
  /** States when the call counts as refused without a decision, in UTC milliseconds. Null for never. */
  readonly expiresAtMs: number | null;
  /** Holds the id of the turn that asked, or else of the newest turn. */
  readonly turnId: string;
}

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
  /** Lists the calls that provably did not run, because no decision on them was stored. `resume` asks again. */
  readonly pendingApprovals: readonly PendingApproval[];
}

export type TurnMarkState =
  | "open"
  | "done"
  | "aborted"
  | "failed"
  | "step-limit"
  | "denied"
  | "waiting"
  | "interrupted";

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
  "waiting",
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
