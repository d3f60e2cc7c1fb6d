import type { RecordDraft } from "@throughline/core";
import { isFields } from "@throughline/core/internal";
import { textOfContent } from "./window-facts.ts";
import type { WindowLog } from "./window-log.ts";

/** A shorter beginning is not worth continuing: the model is asked for the whole reply again. */
const leastCharacters = 80;

const wording =
  "Your last reply was cut off. Its text up to there is above. Write the rest: begin with the very next word, repeat nothing.";

/**
 * Creates the message that asks for the rest of a reply that was cut off. Without such a reply at the end of the branch
 * there is none, and the model is asked again.
 *
 * @param recovered the reply that the same append stores before the message
 */
export function continueDrafts({ facts, head }: WindowLog, recovered: RecordDraft | null): readonly RecordDraft[] {
  const newest = facts.newest?.id === head.headId ? facts.newest.record : null;
  if (!isCutOff((recovered ?? newest)?.["message"])) return [];
  return [{ type: "message", message: { role: "user", content: wording, source: "continue" } }];
}

function isCutOff(message: unknown): boolean {
  if (!isFields(message) || message["role"] !== "assistant" || message["stopReason"] !== "aborted") return false;
  const { content } = message;
  const hasCall = Array.isArray(content) && content.some((block) => isFields(block) && block["type"] === "toolCall");
  return !hasCall && textOfContent(content).trim().length >= leastCharacters;
}
