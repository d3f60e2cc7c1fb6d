import { isFields, type Fields } from "@throughline/core/internal";
import type { FrameworkCall, LoggedDecision } from "../framework-log/waiting-calls.ts";

/** Returns the name of the tool that a part calls; null for every other part. */
export function toolOf({ type, toolName }: Fields): string | null {
  if (type === "dynamic-tool") return typeof toolName === "string" ? toolName : null;
  const isTool = typeof type === "string" && type.startsWith("tool-") && type !== "tool-invocation";
  return isTool ? type.slice("tool-".length) : null;
}

/** Returns the position at which the last step of a message begins. The SDK carries out approvals of this step only. */
export function lastStepOf(parts: readonly unknown[]): number {
  return parts.findLastIndex((part) => isFields(part) && part["type"] === "step-start") + 1;
}

/** Returns the calls of a message that wait for the user's approval. */
export function requestedApprovals({ role, parts }: Fields): readonly FrameworkCall[] {
  if (role !== "assistant" || !Array.isArray(parts)) return [];
  const step = (parts as readonly unknown[]).slice(lastStepOf(parts));
  return step.flatMap((part) => {
    if (!isFields(part) || part["state"] !== "approval-requested") return [];
    const [tool, callId] = [toolOf(part), part["toolCallId"]];
    return tool === null || typeof callId !== "string" ? [] : [{ callId, tool }];
  });
}

/** Returns a message with these decisions as the user's answers to its approvals. The SDK then carries them out. */
export function withDecisions(message: Fields, decisions: ReadonlyMap<string, LoggedDecision>): Fields {
  const asked = new Set(requestedApprovals(message).map(({ callId }) => callId));
  if (asked.size === 0 || decisions.size === 0) return message;
  const parts = (message["parts"] as readonly unknown[]).map((part) => {
    const decision = isFields(part) && part["state"] === "approval-requested" ? decisionOn(part, decisions) : undefined;
    return decision === undefined ? part : decidedPart(part as Fields, decision);
  });
  return { ...message, parts };
}

/** Returns the calls on which a message states another decision than the log. */
export function otherDecisions({ parts }: Fields, decisions: ReadonlyMap<string, LoggedDecision>): readonly string[] {
  if (!Array.isArray(parts)) return [];
  return (parts as readonly unknown[]).filter(isFields).flatMap((part) => {
    const decision = decisionOn(part, decisions);
    const approved = isFields(part["approval"]) ? part["approval"]["approved"] : undefined;
    const isOther = decision !== undefined && typeof approved === "boolean" && approved !== decision.isAllowed;
    return isOther ? [String(part["toolCallId"])] : [];
  });
}

function decisionOn(part: Fields, decisions: ReadonlyMap<string, LoggedDecision>): LoggedDecision | undefined {
  return toolOf(part) === null ? undefined : decisions.get(part["toolCallId"] as string);
}

function decidedPart(part: Fields, { isAllowed, words }: LoggedDecision): Fields {
  const asked = isFields(part["approval"]) ? part["approval"] : {};
  const approval = { ...asked, approved: isAllowed, ...(words === null ? {} : { reason: words }) };
  return { ...part, state: "approval-responded", approval };
}
