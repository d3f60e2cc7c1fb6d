import type { Steps } from "@throughline/core/internal";
import { cleanText, cleanUserBlock, isComplete, wellFormed } from "./clean-blocks.ts";
import { cleanReply } from "./clean-reply.ts";
import { splitDoubtfulSteps, stepAt, type StepList } from "./collect-steps.ts";
import { branchSummaryText } from "./message-texts.ts";
import type { NeutralBlock, NeutralCompactionSummary, NeutralMessage, SignedSummary } from "./neutral-message.ts";
import type { RepairedItem, ReportRepair } from "./repair.ts";
import type { AssistantItem, ReplayItem, ResultItem, SystemItem, UserItem } from "./replay-item.ts";
import type { ReplayRules } from "./replay-rules.ts";
import type { ReplayUserBlock } from "./replay-turn.ts";

/**
 * Converts the messages of a context into items with clean blocks, one message per step. The items hold no empty text,
 * no foreign thinking, and no block that the provider cannot read.
 *
 * @param firstPlace the position of the first message in the whole context
 */
export function* collectItems(
  messages: readonly NeutralMessage[],
  firstPlace: number,
  rules: ReplayRules,
  report: ReportRepair,
): Steps<ReplayItem[]> {
  const items: ReplayItem[] = [];
  for (let index = 0; index < messages.length; index++) {
    yield;
    const item = itemOf(messages[index] as NeutralMessage, firstPlace + index, rules, report);
    if (item !== null) items.push(item);
  }
  return items;
}

/** Does the same for a context from its beginning. Messages that need no repair become steps, which are cheaper. */
export function* collectSteps(
  messages: readonly NeutralMessage[],
  rules: ReplayRules,
  report: ReportRepair,
): Steps<StepList> {
  const items: ReplayItem[] = [];
  for (let place = 0; place < messages.length; place++) {
    yield;
    const step = stepAt(messages, place, rules);
    const item = step ?? itemOf(messages[place] as NeutralMessage, place, rules, report);
    if (item !== null) items.push(item);
    place += step?.results.length ?? 0;
  }
  return yield* splitDoubtfulSteps(items);
}

function itemOf(message: NeutralMessage, place: number, rules: ReplayRules, report: ReportRepair): ReplayItem | null {
  switch (message.role) {
    case "assistant":
      return cleanReply(message, place, rules, report);
    case "toolResult": {
      const item: ResultItem = {
        kind: "result",
        recordId: message.recordId,
        place,
        callId: message.toolCallId,
        toolName: message.toolName,
        isError: message.isError,
        content: [],
        shownAs: null,
      };
      item.content = userBlocks(item, "result", message.content, rules, report);
      return item;
    }
    case "compactionSummary": {
      const own = signedItem(message, place, rules);
      if (own !== null) return own;
      const content = wrapped(message, (summary) => `${rules.summaryPrefix}\n${summary}`);
      return userItem(message, place, content, rules, report);
    }
    case "branchSummary":
      return userItem(message, place, wrapped(message, branchSummaryText), rules, report);
    case "system":
      return systemItem(message, place, rules, report);
    case "other":
      report("unknown-role-removed", { recordId: message.recordId, place }, message.originalRole);
      return null;
    default:
      return userItem(message, place, message.content, rules, report);
  }
}

/** Returns the provider's own summary unchanged if the receiving API can read it. */
function signedItem(
  { signed, recordId }: NeutralCompactionSummary,
  place: number,
  rules: ReplayRules,
): AssistantItem | null {
  if (signed === null || !rules.apis.has(signed.api)) return null;
  const { block } = signed;
  if (!rules.carriedBlocks.reply.has(String(block["type"])) || !isComplete(String(block["type"]), block)) return null;
  const blocks: AssistantItem["blocks"] = [{ type: "raw", block: wellFormed(block) as SignedSummary["block"] }];
  const none = { isUnsent: false, isFragment: false, responseId: null, stopReason: null };
  return { kind: "assistant", recordId, place, isSummary: true, ...none, blocks, kept: blocks };
}

/** Wraps a summary. An empty summary stays empty, because the wrapping alone means nothing. */
function wrapped(message: NeutralMessage, wrap: (summary: string) => string): readonly NeutralBlock[] {
  const summary = plain(message);
  return summary.trim() === "" ? [] : [{ type: "text", text: wrap(summary) }];
}

function plain(message: NeutralMessage): string {
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
}

function systemItem(
  message: NeutralMessage,
  place: number,
  rules: ReplayRules,
  report: ReportRepair,
): SystemItem | UserItem | null {
  const said = plain(message);
  const repaired = { recordId: message.recordId, place };
  if (said.trim() === "") {
    report("empty-message-removed", repaired, message.role);
    return null;
  }
  if (rules.systemMessages === "inline") {
    const text = cleanText(said, repaired, report) as string;
    return { kind: "system", ...repaired, text };
  }
  report("system-message-shown", repaired, "system", "user");
  return userItem(message, place, [{ type: "text", text: `<system>\n${said}\n</system>` }], rules, report);
}

function userItem(
  message: NeutralMessage,
  place: number,
  content: readonly NeutralBlock[],
  rules: ReplayRules,
  report: ReportRepair,
): UserItem | null {
  const { recordId, role } = message;
  const item: UserItem = { kind: "user", recordId, place, isSummary: role === "compactionSummary", blocks: [] };
  item.blocks = userBlocks(item, "user", content, rules, report);
  if (item.blocks.length > 0) return item;
  report("empty-message-removed", item, role);
  return null;
}

function userBlocks(
  item: RepairedItem,
  side: "user" | "result",
  content: readonly NeutralBlock[],
  rules: ReplayRules,
  report: ReportRepair,
): ReplayUserBlock[] {
  const [only] = content;
  // Most messages have one block, and a growing list would allocate room for more, so this case is separate.
  if (content.length === 1 && only !== undefined) {
    const block = cleanUserBlock(only, side, item, rules, report);
    return block === null ? [] : [block];
  }
  return content.map((block) => cleanUserBlock(block, side, item, rules, report)).filter((block) => block !== null);
}
