import { isFields, type Fields } from "@throughline/core/internal";
import { madeUpTexts } from "@throughline/history/internal";
import { lastStepOf, toolOf } from "./message-approvals.ts";

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
  const lastStep = lastStepOf(list);
  const answered = list.map((part, at) => (isFields(part) ? answeredPart(part, isLast && at >= lastStep) : part));
  return answered.every((part, at) => part === list[at]) ? message : { ...message, parts: answered };
}

function answeredPart(part: Fields, isOpen: boolean): Fields {
  const { state } = part;
  const approval = isFields(part["approval"]) ? part["approval"] : {};
  if (toolOf(part) === null) return part;
  if (state === "input-available" || (state === "approval-responded" && approval["approved"] === true && !isOpen))
    return { ...part, state: "output-error", errorText: madeUpTexts.resultMayHaveRun };
  if (state === "approval-responded" && approval["approved"] === false && !isOpen)
    return { ...part, state: "output-denied" };
  if (state === "approval-requested" && !isOpen)
    return { ...part, state: "output-denied", approval: { ...approval, approved: false, reason: undecidedText } };
  return part;
}
