import { isFields, type Fields } from "@throughline/core/internal";
import { shownText } from "../as-text.ts";
import { textBlock } from "../block-messages.ts";

/** Returns Anthropic's blocks for those of a thread; null when the content is no list. */
export function blocksOf(content: unknown): readonly Fields[] | null {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (!Array.isArray(content)) return null;
  return (content as readonly unknown[]).flatMap((block) => (isFields(block) ? blockOf(block) : textBlock(block)));
}

/** Only the fields of Anthropic's blocks are taken; the source of the record has the others. */
function blockOf(block: Fields): readonly Fields[] {
  switch (block["type"]) {
    case "text":
      return textBlock(block["text"]);
    case "thinking": {
      const { thinking, signature } = block;
      const signed = typeof signature === "string" && signature !== "" ? { signature } : {};
      return [{ type: "thinking", thinking: shownText(thinking), ...signed }];
    }
    case "tool_use":
      return [{ type: "tool_use", id: block["id"], name: block["name"], input: block["input"] ?? {} }];
    case "tool_result":
      return resultOf(block);
    default:
      return [block];
  }
}

const endedStatuses: ReadonlySet<unknown> = new Set(["done", "error", "cancelled", "rejected-by-user"]);

/** A tool that runs has no result yet. The program writes the message again when it has ended. */
function resultOf(block: Fields): readonly Fields[] {
  const { run, toolUseID, tool_use_id: usualId } = block;
  if (!isFields(run)) return typeof usualId === "string" ? [block] : [];
  const { status, result, error, reason } = run;
  if (!endedStatuses.has(status) && result === undefined) return [];
  const isFailed = status !== undefined && status !== "done";
  const problem = isFields(error) ? shownText(error["message"]) : shownText(reason);
  const text = isFailed ? problem || shownText(result) || shownText(status) : shownText(result);
  const id = typeof toolUseID === "string" ? toolUseID : usualId;
  return [{ type: "tool_result", tool_use_id: id, content: text, ...(isFailed ? { is_error: true } : {}) }];
}
