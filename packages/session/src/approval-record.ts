import { isFields, throughlineDraft, throughlineKind, type Fields } from "@throughline/core/internal";
import type { RecordDraft, SessionRecord } from "@throughline/core";
import type { ApprovalFacts } from "./session-options.ts";

interface ApprovedCall {
  readonly turnId: string;
  readonly callId: string;
  readonly tool: string;
  readonly askedMs: number;
  readonly decidedMs: number;
}

/** Holds what a record states about a decision on a call. */
export interface RecordedApproval {
  readonly callId: string;
  readonly turnId: string;
  /** `waiting` means that a person was asked and the turn ended without an answer. */
  readonly state: "allowed" | "refused" | "waiting";
  readonly words: string | null;
  readonly facts: Fields;
  readonly askedMs: number | null;
  /** States when a question without an answer counts as refused, in UTC milliseconds. Null for never. */
  readonly expiresAtMs: number | null;
}

const deciders: ReadonlySet<unknown> = new Set(["person", "session", "setting", "flag", "program", "deadline"]);
const allowing: readonly unknown[] = ["once", "session", "unasked"];

/** Cuts longer texts of a hook, because the record must fit whatever the hook states. */
const maxTextChars = 4096;
/** Limits the facts of a waiting call, as JSON. They are shown to a person, and no model sees them. */
const maxFactChars = 16_384;

/** Reads the call that a record decides on, or that waits for a decision. Null for every other record. */
export function readApproval(record: SessionRecord | RecordDraft): RecordedApproval | null {
  if (throughlineKind(record) !== "approval") return null;
  const data = record["data"];
  if (!isFields(data)) return null;
  const { callId, turnId, decision, words, facts, askedMs, expiresAtMs } = data;
  if (typeof callId !== "string" || typeof turnId !== "string") return null;
  return {
    callId,
    turnId,
    state: decision === "wait" ? "waiting" : allowing.includes(decision) ? "allowed" : "refused",
    words: typeof words === "string" ? words : null,
    facts: isFields(facts) ? facts : {},
    askedMs: typeof askedMs === "number" ? askedMs : null,
    expiresAtMs: isTime(expiresAtMs) ? expiresAtMs : null,
  };
}

export function isApproval(decision: unknown): boolean {
  return decision === true || decision === "unasked" || factsIn(decision, "approve") !== null;
}

/** Returns true for a decision that is left to a later time. */
export function isWait(decision: unknown): boolean {
  return isFields(decision) && "wait" in decision;
}

/**
 * Falls back to the plain decision when the hook's facts contradict it, so that a record never contradicts what ran. A
 * call without a question has a record too. Otherwise a kill while it runs would prove that it did not run.
 */
export function approvalDraft(decision: unknown, call: ApprovedCall): RecordDraft {
  const { turnId, callId, tool, askedMs, decidedMs } = call;
  const about = { turnId, callId, tool };
  if (isWait(decision))
    return throughlineDraft("approval", {
      ...about,
      decision: "wait",
      ...waitFacts(decision),
      ...deadlineOf(decision),
      askedMs,
    });
  if (decision === "unasked") return throughlineDraft("approval", { ...about, decision, decidedMs });
  const facts = (factsIn(decision, "approve") ?? decision ?? {}) as Readonly<Record<keyof ApprovalFacts, unknown>>;
  const allowed: readonly unknown[] = isApproval(decision) ? ["once", "session"] : ["no", "cancel"];
  return throughlineDraft("approval", {
    ...about,
    decision: allowed.includes(facts.decision) ? facts.decision : allowed[0],
    ...(deciders.has(facts.by) ? { by: facts.by } : {}),
    ...textsOf(facts),
    askedMs: typeof facts.askedMs === "number" && Number.isFinite(facts.askedMs) ? facts.askedMs : askedMs,
    decidedMs,
  });
}

/** A deadline that is no number would never be over, so the call is refused instead of waiting for ever. */
function deadlineOf(decision: unknown): { readonly expiresAtMs?: number } {
  const { expiresAtMs } = decision as { readonly expiresAtMs?: unknown };
  if (expiresAtMs === undefined || expiresAtMs === null) return {};
  if (isTime(expiresAtMs)) return { expiresAtMs };
  throw new TypeError("`expiresAtMs` must be a time in UTC milliseconds.");
}

/** Dates end with this time, in UTC milliseconds. */
const lastMs = 8_640_000_000_000_000;

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= lastMs;
}

/** Returns the text that the model reads about a call without a decision in time. */
export function expiredText(expiresAtMs: number): string {
  return `Nobody decided on this call before ${new Date(expiresAtMs).toISOString()}. It was not run.`;
}

/** Facts that are no JSON object, or too large for a record, are replaced by a note. */
function waitFacts(decision: unknown): { readonly facts?: Fields } {
  const { wait } = decision as { readonly wait?: unknown };
  if (!isFields(wait)) return {};
  try {
    const json = JSON.stringify(wait);
    if (json.length <= maxFactChars) return { facts: JSON.parse(json) as Fields };
    return { facts: { leftOut: `The facts have ${json.length} characters, too many to be kept.` } };
  } catch {
    return { facts: { leftOut: "The facts are not JSON." } };
  }
}

function textsOf(facts: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const texts = ["path", "words", "beforeSha256", "afterSha256"].flatMap((name) => {
    const text = facts[name];
    return typeof text === "string" ? [[name, text.slice(0, maxTextChars).toWellFormed()] as const] : [];
  });
  return Object.fromEntries(texts);
}

function factsIn(decision: unknown, name: string): object | null {
  if (typeof decision !== "object" || decision === null) return null;
  const facts = (decision as Readonly<Record<string, unknown>>)[name];
  return typeof facts === "object" && facts !== null ? facts : null;
}
