import type { SendDenial } from "./send-denial.ts";
import { throughlineDraft, throughlineKind } from "@throughline/core/internal";
import { type RecordDraft, type SessionRecord } from "@throughline/core";

/** `open` begins a turn; every other state ends it. */
export type TurnMarkState = "open" | "done" | "aborted" | "failed" | "step-limit" | "denied" | "interrupted";

/** A side record at the beginning and at the end of a turn. */
export interface TurnMark {
  readonly turnId: string;
  readonly state: TurnMarkState;
  /**
   * Of an open mark: as it was given to the store. Absent with an idempotency key, which needs the same record again.
   * `fence` is also that of the mark that ends a turn held by a lease alone.
   */
  readonly owner?: string;
  readonly leaseUntilMs?: number;
  readonly fence?: number;
  /** Of an open mark: the turn that this one resumes. */
  readonly resumes?: string;
  /** Of a failed turn: why. */
  readonly error?: { readonly code: string; readonly message: string };
  /** Of a denied turn: what decided. */
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

/** What counts of owner and lease is what the store says: it changes while the turn runs. */
export function turnMarkDraft(mark: TurnMark): RecordDraft {
  return throughlineDraft("turn", { ...mark });
}

/** Null for every other record, and for marks this build does not know. */
export function readTurnMark(record: SessionRecord): TurnMark | null {
  if (throughlineKind(record) !== "turn") return null;
  const data = record["data"] as Readonly<Record<string, unknown>> | null | undefined;
  if (typeof data?.["turnId"] !== "string" || !states.has(data["state"])) return null;
  // Turn and state are checked; the other fields are for reports.
  return data as unknown as TurnMark;
}
