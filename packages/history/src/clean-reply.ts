import { cleanText, cleanUnknown, wellFormed } from "./clean-blocks.ts";
import type { NeutralAssistant, NeutralBlock, NeutralThinking, NeutralToolCall } from "./neutral-message.ts";
import type { ReportRepair } from "./repair.ts";
import type { AssistantItem, AssistantItemBlock, CallSite } from "./replay-item.ts";
import { carriesNothing, type ReplayRules } from "./replay-rules.ts";
import type { ReplayText, ReplayThinking } from "./replay-turn.ts";

const failedReasons: ReadonlySet<string | null> = new Set(["aborted", "error"]);

/** A reply with clean blocks; null when it has nothing that a provider would take for one. */
export function cleanReply(
  message: NeutralAssistant,
  place: number,
  rules: ReplayRules,
  report: ReportRepair,
): AssistantItem | null {
  const { recordId, isFragment, responseId, stopReason } = message;
  const isFailed = failedReasons.has(stopReason);
  const item: AssistantItem = {
    kind: "assistant",
    recordId,
    place,
    isFailed,
    isSummary: false,
    isFragment,
    responseId,
    stopReason,
    blocks: [],
    kept: [],
  };
  if (isFailed) report("failed-turn-dropped", item, spoken(message));
  const cleaner = new ReplyCleaner(message, item, rules, isFailed ? () => undefined : report);
  const blocks: AssistantItemBlock[] = [];
  let saysMore = false;
  for (const given of message.content) {
    const block = cleaner.clean(given);
    if (block === null) continue;
    blocks.push(block);
    saysMore ||= block.type !== "thinking";
  }
  item.blocks = blocks;
  item.kept = blocks;
  // A reply that holds nothing but thinking is no message to any provider.
  if (isFailed || saysMore) return item;
  report("empty-message-removed", item, "assistant");
  return null;
}

function spoken(message: NeutralAssistant): string {
  return message.content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("\n");
}

class ReplyCleaner {
  private readonly item: AssistantItem;
  private readonly rules: ReplayRules;
  private readonly report: ReportRepair;
  /** Whether the model that gets the messages wrote this one, in the same format. */
  private readonly isOwn: boolean;
  private readonly isOwnProvider: boolean;
  private readonly isBound: boolean;
  /** Server tools that were called and answered inside this reply; one half alone is refused. */
  private readonly answered: ReadonlySet<unknown>;

  constructor(message: NeutralAssistant, item: AssistantItem, rules: ReplayRules, report: ReportRepair) {
    const { target } = rules;
    const isOwnApi = message.api === null || rules.apis.has(message.api);
    this.item = item;
    this.rules = rules;
    this.report = report;
    this.isOwnProvider = target !== null && message.provider === target.provider && isOwnApi;
    this.isOwn = this.isOwnProvider && message.model === target?.modelId;
    this.isBound = !(rules.bindsThinking && message.isPrefixChanged);
    this.answered = serverToolPairs(message.content);
  }

  clean(block: NeutralBlock): AssistantItemBlock | null {
    switch (block.type) {
      case "text":
        return this.text(block);
      case "thinking":
        return this.thinking(block);
      case "toolCall":
        return this.call(block);
      case "unknown":
        return this.unknown(block.block);
      default:
        return this.unknown({ type: block.type });
    }
  }

  private text(block: { readonly text: string; readonly signature?: string }): ReplayText | null {
    const text = cleanText(block.text, this.item, this.report);
    if (text === null) return null;
    if (block.signature === undefined && text === block.text) return block as ReplayText;
    const signature = this.partSignature(block.signature, false);
    return signature === null ? { type: "text", text } : { type: "text", text, signature };
  }

  /** A signature holds only for the model that made it, in the conversation it was made in. */
  private thinking(block: NeutralThinking): ReplayThinking | null {
    const { thinking, signature, redacted } = block;
    const carried = this.isOwn && this.isBound && thinking.isWellFormed() ? this.rules.carryThinking(block) : null;
    if (carried !== null) return { type: "thinking", thinking, signature, redacted, itemId: carried.itemId };
    this.report("thinking-removed", this.item, thinking);
    return null;
  }

  private call(block: NeutralToolCall): CallSite {
    const given = wellFormed(block.arguments) as NeutralToolCall["arguments"];
    if (given !== block.arguments) this.report("lone-surrogate-replaced", this.item, null);
    // Nearly every call is sent as it is.
    const call: NeutralToolCall =
      given === block.arguments ? block : { type: "toolCall", id: block.id, name: block.name, arguments: given };
    const signature = this.partSignature(block.signature, true);
    return { type: "callSite", call, signature, owner: this.item, result: null };
  }

  private partSignature(signature: string | undefined, isCall: boolean): string | null {
    if (signature === undefined) return null;
    if (this.rules.signsParts && this.isOwn && this.isBound && isBase64(signature)) return signature;
    // What other formats keep beside a text (an item's id) is bookkeeping, not a signature.
    if (isCall) this.report("signature-removed", this.item, signature);
    return null;
  }

  private unknown(block: Readonly<Record<string, unknown>>): AssistantItemBlock {
    const id = serverToolId(block);
    const isWhole = id === null || this.answered.has(id);
    const taken = this.isOwnProvider && isWhole ? this.rules.carriedBlocks.reply : carriesNothing.reply;
    const clean = cleanUnknown(block, taken, this.item, this.rules, this.report);
    if (clean.type === "text" || clean.type === "raw") return clean;
    // No provider takes files from the assistant's side.
    const text = `[${clean.type} left out]`;
    this.report("file-replaced", this.item, clean.type, text);
    return { type: "text", text };
  }
}

function isBase64(signature: string): boolean {
  return signature.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(signature);
}

function serverToolId(block: Readonly<Record<string, unknown>>): unknown {
  const type = String(block["type"]);
  if (type === "server_tool_use" || type === "mcp_tool_use") return block["id"] ?? "";
  return type.endsWith("_tool_result") ? (block["tool_use_id"] ?? "") : null;
}

const noPairs: ReadonlySet<unknown> = new Set();

function serverToolPairs(content: readonly NeutralBlock[]): ReadonlySet<unknown> {
  // Nearly every reply; two sets for each of thousands are felt.
  if (!content.some((block) => block.type === "unknown")) return noPairs;
  const called = new Set<unknown>();
  const answered = new Set<unknown>();
  for (const block of content) {
    if (block.type !== "unknown") continue;
    const { type, id, tool_use_id: answeredId } = block.block;
    if (type === "server_tool_use" || type === "mcp_tool_use") called.add(id);
    else if (typeof type === "string" && type.endsWith("_tool_result") && called.has(answeredId))
      answered.add(answeredId);
  }
  return answered;
}
