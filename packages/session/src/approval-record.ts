import { throughlineDraft, throughlineKind } from "@throughline/core/internal";
import type { RecordDraft, SessionRecord } from "@throughline/core";
import type { ApprovalFacts } from "./session-options.ts";

interface ApprovedCall {
  readonly turnId: string;
  readonly callId: string;
  readonly tool: string;
  readonly askedMs: number;
  readonly decidedMs: number;
}

const decisions: ReadonlySet<unknown> = new Set(["once", "session", "no", "cancel"]);
const deciders: ReadonlySet<unknown> = new Set(["person", "session", "setting", "flag"]);

/** Cuts longer texts of a hook, because the record must fit whatever the hook states. */
const maxTextChars = 4096;

/** States what is certain about a call that has no result because its process ended. */
export type InterruptedCall = "may-have-run" | "undecided" | "refused";

/** Reads the call that a record decides on, and whether it may run. Null for every other record. */
export function readApproval(record: SessionRecord): { readonly callId: string; readonly isAllowed: boolean } | null {
  if (throughlineKind(record) !== "approval") return null;
  const { callId, decision } = (record["data"] ?? {}) as Readonly<Record<string, unknown>>;
  return typeof callId === "string" ? { callId, isAllowed: decision === "once" || decision === "session" } : null;
}

export function isApproval(decision: unknown): boolean {
  return decision === true || factsIn(decision, "approve") !== null;
}

/**
 * Falls back to the plain decision when the hook's facts contradict it, so that a record never contradicts what ran.
 */
export function approvalDraft(decision: unknown, call: ApprovedCall): RecordDraft {
  const facts = (factsIn(decision, "approve") ?? decision ?? {}) as Readonly<Record<keyof ApprovalFacts, unknown>>;
  const isAllowed = isApproval(decision);
  const allowed: readonly unknown[] = isAllowed ? ["once", "session"] : ["no", "cancel"];
  const stated = decisions.has(facts.decision) && allowed.includes(facts.decision) ? facts.decision : allowed[0];
  const { turnId, callId, tool, askedMs, decidedMs } = call;
  return throughlineDraft("approval", {
    turnId,
    callId,
    tool,
    decision: stated,
    ...(deciders.has(facts.by) ? { by: facts.by } : {}),
    ...textsOf(facts),
    askedMs: typeof facts.askedMs === "number" && Number.isFinite(facts.askedMs) ? facts.askedMs : askedMs,
    decidedMs,
  });
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
