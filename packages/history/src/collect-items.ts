import type { Context } from "./build-context.ts";
import { branchSummaryText } from "./message-texts.ts";
import type {
  NeutralAssistant,
  NeutralBlock,
  NeutralImage,
  NeutralMessage,
  NeutralThinking,
  NeutralToolCall,
} from "./neutral-message.ts";
import type { ReportRepair } from "./repair.ts";
import type { AssistantItem, CallSite, ReplayItem, ResultItem, UserItem } from "./replay-item.ts";
import type { ReplayRules } from "./replay-rules.ts";
import type { ReplayImage, ReplayText, ReplayThinking } from "./replay-turn.ts";

/** The messages of a context with clean blocks: no empty text, no foreign thinking, nothing a provider cannot read. */
export function collectItems(context: Context, rules: ReplayRules, report: ReportRepair): ReplayItem[] {
  const items: ReplayItem[] = [];
  for (const message of context.messages) {
    const item = itemOf(message, rules, report);
    if (item !== null) items.push(item);
  }
  return items;
}

function itemOf(message: NeutralMessage, rules: ReplayRules, report: ReportRepair): ReplayItem | null {
  switch (message.role) {
    case "assistant":
      return assistantItem(message, rules, report);
    case "toolResult": {
      const { recordId, toolCallId, toolName, isError } = message;
      const content = userBlocks(message, message.content, rules, report);
      return {
        kind: "result",
        recordId,
        callId: toolCallId,
        toolName,
        isError,
        content,
        isShownAsText: false,
      } satisfies ResultItem;
    }
    case "compactionSummary":
      return userItem(
        message,
        wrapped(message, (summary) => `${rules.summaryPrefix}\n${summary}`),
        rules,
        report,
      );
    case "branchSummary":
      return userItem(message, wrapped(message, branchSummaryText), rules, report);
    case "other":
      report("unknown-role-removed", message.recordId, message.originalRole);
      return null;
    default:
      return userItem(message, message.content, rules, report);
  }
}

/** A summary without words stays without: its wrapping alone would say nothing. */
function wrapped(message: NeutralMessage, wrap: (summary: string) => string): readonly NeutralBlock[] {
  const summary = message.content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
  return summary.trim() === "" ? [] : [{ type: "text", text: wrap(summary) }];
}

function userItem(
  message: NeutralMessage,
  content: readonly NeutralBlock[],
  rules: ReplayRules,
  report: ReportRepair,
): UserItem | null {
  const blocks = userBlocks(message, content, rules, report);
  if (blocks.length > 0) {
    return { kind: "user", recordId: message.recordId, isSummary: message.role === "compactionSummary", blocks };
  }
  report("empty-message-removed", message.recordId, message.role);
  return null;
}

function userBlocks(
  message: NeutralMessage,
  content: readonly NeutralBlock[],
  rules: ReplayRules,
  report: ReportRepair,
): (ReplayText | ReplayImage)[] {
  const blocks: (ReplayText | ReplayImage)[] = [];
  for (const block of content) {
    if (block.type === "text") {
      const text = cleanText(block.text, message.recordId, report);
      if (text !== null) blocks.push({ type: "text", text });
    } else if (block.type === "image") {
      blocks.push(cleanImage(block, message.recordId, rules, report));
    } else {
      report("unknown-block-removed", message.recordId, block.type === "unknown" ? block.originalType : block.type);
    }
  }
  return blocks;
}

function cleanText(text: string, recordId: string, report: ReportRepair): string | null {
  if (text.trim() === "") {
    report("empty-text-removed", recordId, text);
    return null;
  }
  if (text.isWellFormed()) return text;
  report("lone-surrogate-replaced", recordId, null);
  return text.toWellFormed();
}

function cleanImage(
  image: NeutralImage,
  recordId: string,
  rules: ReplayRules,
  report: ReportRepair,
): ReplayImage | ReplayText {
  const { source, data, mimeType } = image;
  const isLink = source?.["type"] === "url" && typeof source["url"] === "string";
  if (isLink) return { type: "image", source: { type: "url", url: source["url"] } };
  const mediaType = source === null ? mimeType : source["media_type"];
  const bytes = source === null ? data : source["data"];
  if (typeof mediaType === "string" && rules.imageTypes.has(mediaType) && typeof bytes === "string" && bytes !== "") {
    return { type: "image", source: { type: "base64", media_type: mediaType, data: bytes } };
  }
  const text = `[image left out: ${typeof mediaType === "string" ? mediaType : "of an unknown kind"}]`;
  report("image-replaced", recordId, "image", text);
  return { type: "text", text };
}

const failedReasons: ReadonlySet<string | null> = new Set(["aborted", "error"]);

function assistantItem(message: NeutralAssistant, rules: ReplayRules, report: ReportRepair): AssistantItem | null {
  const { recordId, isFragment, responseId, stopReason } = message;
  const isFailed = failedReasons.has(stopReason);
  const item: AssistantItem = { kind: "assistant", recordId, isFailed, isFragment, responseId, stopReason, blocks: [] };
  if (isFailed) report("failed-turn-dropped", recordId, spoken(message));
  const quiet: ReportRepair = isFailed ? () => undefined : report;
  for (const block of message.content) {
    const clean = assistantBlock(message, block, item, rules, quiet);
    if (clean !== null) item.blocks.push(clean);
  }
  // A reply that holds nothing but thinking is no message to any provider.
  if (isFailed || item.blocks.some((block) => block.type !== "thinking")) return item;
  report("empty-message-removed", recordId, "assistant");
  return null;
}

function spoken(message: NeutralAssistant): string {
  return message.content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("\n");
}

function assistantBlock(
  message: NeutralAssistant,
  block: NeutralBlock,
  owner: AssistantItem,
  rules: ReplayRules,
  report: ReportRepair,
): ReplayText | ReplayThinking | CallSite | null {
  switch (block.type) {
    case "text": {
      const text = cleanText(block.text, message.recordId, report);
      return text === null ? null : { type: "text", text };
    }
    case "thinking":
      return cleanThinking(message, block, rules, report);
    case "toolCall": {
      const call = cleanCall(block, message.recordId, rules, report);
      return { type: "callSite", call, owner, result: null, wireId: "" };
    }
    default:
      report("unknown-block-removed", message.recordId, block.type === "unknown" ? block.originalType : block.type);
      return null;
  }
}

/** A signature holds only for the model that made it, in the conversation it was made in. */
function cleanThinking(
  message: NeutralAssistant,
  block: NeutralThinking,
  rules: ReplayRules,
  report: ReportRepair,
): ReplayThinking | null {
  const { target } = rules;
  const isOwn = target !== null && message.provider === target.provider && message.model === target.modelId;
  const { thinking, redacted, signature } = block;
  if (isOwn && !message.isPrefixChanged && signature !== null && signature.trim() !== "" && thinking.isWellFormed()) {
    return { type: "thinking", thinking, signature, redacted };
  }
  report("thinking-removed", message.recordId, thinking);
  return null;
}

function cleanCall(call: NeutralToolCall, recordId: string, rules: ReplayRules, report: ReportRepair): NeutralToolCall {
  const { forbidden, maxLength } = rules.toolNames;
  const name = call.name.trim().replace(forbidden, "_").slice(0, maxLength) || "unnamed_tool";
  if (name !== call.name) report("tool-name-changed", recordId, call.name, name);
  const given = wellFormed(call.arguments) as NeutralToolCall["arguments"];
  if (given !== call.arguments) report("lone-surrogate-replaced", recordId, null);
  return { type: "toolCall", id: call.id, name, arguments: given };
}

/** The same value when every string in it is well-formed; a copy with U+FFFD in place of lone surrogates otherwise. */
function wellFormed(value: unknown): unknown {
  if (!hasLoneSurrogate(value)) return value;
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  const entries = Object.entries(value as object).map(
    ([key, field]) => [key.toWellFormed(), wellFormed(field)] as const,
  );
  return Object.fromEntries(entries);
}

function hasLoneSurrogate(value: unknown): boolean {
  if (typeof value === "string") return !value.isWellFormed();
  if (typeof value !== "object" || value === null) return false;
  for (const key in value) {
    if (!key.isWellFormed() || hasLoneSurrogate((value as Record<string, unknown>)[key])) return true;
  }
  return false;
}
