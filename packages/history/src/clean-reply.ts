import { cleanText, cleanUnknown, wellFormed } from "./clean-blocks.ts";
import type { NeutralAssistant, NeutralBlock, NeutralThinking, NeutralToolCall } from "./neutral-message.ts";
import type { ReportRepair } from "./repair.ts";
import type { AssistantItem, AssistantItemBlock, CallSite } from "./replay-item.ts";
import { carriesNothing, type ReplayRules } from "./replay-rules.ts";
import type { ReplayText, ReplayThinking } from "./replay-turn.ts";

/**
 * Checks whether a reply is not sent: it failed, or a call of it waits. An aborted reply is sent if the user asked to
 * continue it.
 */
export function isUnsentReply({ stopReason, isContinued, isWaiting }: NeutralAssistant): boolean {
  return (stopReason === "aborted" && isContinued !== true) || stopReason === "error" || isWaiting === true;
}

/**
 * Returns the text of an interrupted reply that the next message asks to continue. It drops signatures and trailing
 * white space. It also drops thinking, which cannot be sent unsigned, and partial calls.
 */
function continuedText(content: readonly NeutralBlock[]): readonly NeutralBlock[] {
  const blocks = content.flatMap((block) =>
    block.type === "text" ? [{ type: "text", text: block.text } as const] : [],
  );
  for (let last = blocks.pop(); last !== undefined; last = blocks.pop()) {
    const text = last.text.trimEnd();
    if (text !== "") return [...blocks, { type: "text", text }];
  }
  return [];
}

/** Returns a reply with clean blocks, or null if no provider would accept the rest as a reply. */
export function cleanReply(
  message: NeutralAssistant,
  place: number,
  rules: ReplayRules,
  report: ReportRepair,
): AssistantItem | null {
  if (message.isContinued === true) return cleanContinued(message, place, rules, report);
  const { recordId, isFragment, responseId, stopReason } = message;
  const isUnsent = isUnsentReply(message);
  const item: AssistantItem = {
    kind: "assistant",
    recordId,
    place,
    isUnsent,
    isSummary: false,
    isFragment,
    responseId,
    stopReason,
    blocks: [],
    kept: [],
  };
  if (isUnsent)
    report(message.isWaiting === true ? "waiting-reply-left-out" : "failed-turn-dropped", item, spoken(message));
  const cleaner = new ReplyCleaner(message, item, rules, isUnsent ? () => undefined : report);
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
  // No provider accepts a reply that holds only thinking. A part of a reply may hold only thinking, because the next
  // part adds to it.
  if (isUnsent || saysMore || (responseId !== null && blocks.length > 0)) return item;
  report("empty-message-removed", item, "assistant");
  return null;
}

function cleanContinued(
  { isContinued: _isContinued, ...message }: NeutralAssistant,
  place: number,
  rules: ReplayRules,
  report: ReportRepair,
): AssistantItem | null {
  const content = continuedText(message.content);
  // The reply holds no text to continue, so it is dropped like every aborted reply.
  if (content.length === 0) return cleanReply(message, place, rules, report);
  const sent = { ...message, stopReason: "stop", content };
  const text = spoken(sent);
  if (text !== spoken(message))
    report("continued-reply-cut", { recordId: message.recordId, place }, spoken(message), text);
  return cleanReply(sent, place, rules, report);
}

function spoken(message: NeutralAssistant): string {
  return message.content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("\n");
}

/** Signatures and provider-specific blocks are valid only at the provider and in the format that produced them. */
function isOwnProvider({ api, provider }: NeutralAssistant, { target, apis }: ReplayRules): boolean {
  return target !== null && provider === target.provider && (api === null || apis.has(api));
}

/** A signature is valid only for the model that made it, within the same conversation. */
function holdsSignatures(message: NeutralAssistant, rules: ReplayRules): boolean {
  if (message.model !== rules.target?.modelId || !isOwnProvider(message, rules)) return false;
  return !(rules.bindsThinking && message.isPrefixChanged);
}

/** Returns how the thinking of a reply is sent, or null when it cannot be sent. */
export function carriedThinking(
  block: NeutralThinking,
  message: NeutralAssistant,
  rules: ReplayRules,
): { readonly itemId: string | null } | null {
  return holdsSignatures(message, rules) && block.thinking.isWellFormed() ? rules.carryThinking(block) : null;
}

export function sentThinking(
  { thinking, signature, redacted }: NeutralThinking,
  itemId: string | null,
): ReplayThinking {
  return { type: "thinking", thinking, signature, redacted, itemId };
}

class ReplyCleaner {
  private readonly message: NeutralAssistant;
  private readonly item: AssistantItem;
  private readonly rules: ReplayRules;
  private readonly report: ReportRepair;
  /**
   * Holds the ids of server tools that were called and answered inside this reply. The provider rejects a call or a
   * result alone.
   */
  private readonly answered: ReadonlySet<unknown>;

  constructor(message: NeutralAssistant, item: AssistantItem, rules: ReplayRules, report: ReportRepair) {
    this.message = message;
    this.item = item;
    this.rules = rules;
    this.report = report;
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

  private thinking(block: NeutralThinking): ReplayThinking | null {
    const carried = carriedThinking(block, this.message, this.rules);
    if (carried !== null) return sentThinking(block, carried.itemId);
    this.report("thinking-removed", this.item, block.thinking);
    return null;
  }

  private call(block: NeutralToolCall): CallSite {
    const given = wellFormed(block.arguments) as NeutralToolCall["arguments"];
    if (given !== block.arguments) this.report("lone-surrogate-replaced", this.item, null);
    if (block.partialJson !== undefined) this.report("arguments-removed", this.item, block.partialJson);
    // Most calls need no change, so the block is reused.
    const call: NeutralToolCall =
      given === block.arguments ? block : { type: "toolCall", id: block.id, name: block.name, arguments: given };
    const signature = this.partSignature(block.signature, true);
    return { type: "callSite", call, signature, owner: this.item, result: null };
  }

  private partSignature(signature: string | undefined, isCall: boolean): string | null {
    if (signature === undefined) return null;
    if (this.rules.signsParts && isBase64(signature) && holdsSignatures(this.message, this.rules)) return signature;
    // Other formats store an item id beside a text. It is bookkeeping and not a signature, so its loss is not reported.
    if (isCall) this.report("signature-removed", this.item, signature);
    return null;
  }

  private unknown(block: Readonly<Record<string, unknown>>): AssistantItemBlock {
    const id = serverToolId(block);
    const isWhole = id === null || this.answered.has(id);
    const isOwn = isWhole && isOwnProvider(this.message, this.rules) && this.rules.canCarry?.(block) !== false;
    const taken = isOwn ? this.rules.carriedBlocks.reply : carriesNothing.reply;
    const clean = cleanUnknown(block, taken, this.item, this.rules, this.report);
    if (clean.type === "text" || clean.type === "raw") return clean;
    // No provider accepts files from the assistant.
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
  // Most replies have no such blocks. Two sets for each of thousands of replies would cost noticeable time.
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
