import { isFields, type Fields } from "@throughline/core/internal";
import { madeUpTexts } from "@throughline/history/internal";

/**
 * The model reads this text for a call that the user neither approved nor refused before the conversation continued.
 */
const undecidedText = "The user answered instead of deciding: the tool has not run.";

/**
 * Adds an answer to each call that has none, because providers refuse unanswered calls. Approvals in the last step of a
 * chat stay, because the SDK carries them out.
 */
export function answeredCalls(message: Fields, isLast: boolean): Fields {
  const { role, parts } = message;
  if (role !== "assistant" || !Array.isArray(parts)) return message;
  const list = parts as readonly unknown[];
  const lastStep = list.findLastIndex((part) => isFields(part) && part["type"] === "step-start");
  const answered = list.map((part, at) => (isFields(part) ? answeredPart(part, isLast && at > lastStep) : part));
  return answered.every((part, at) => part === list[at]) ? message : { ...message, parts: answered };
}

function answeredPart(part: Fields, isOpen: boolean): Fields {
  const { type, toolName, state } = part;
  const approval = isFields(part["approval"]) ? part["approval"] : {};
  const isTool = typeof type === "string" && type.startsWith("tool-") && type !== "tool-invocation";
  if (!isTool && !(type === "dynamic-tool" && typeof toolName === "string")) return part;
  if (state === "input-available" || (state === "approval-responded" && approval["approved"] === true && !isOpen))
    return { ...part, state: "output-error", errorText: madeUpTexts.resultMayHaveRun };
  if (state === "approval-responded" && approval["approved"] === false && !isOpen)
    return { ...part, state: "output-denied" };
  if (state === "approval-requested" && !isOpen)
    return { ...part, state: "output-denied", approval: { ...approval, approved: false, reason: undecidedText } };
  return part;
}
