import type { Steps } from "@throughline/core/internal";
import { hasLoneSurrogate, isCleanText } from "./clean-blocks.ts";
import { carriedThinking, isUnsentReply, sentThinking } from "./clean-reply.ts";
import type { NeutralAssistant, NeutralBlock, NeutralMessage, NeutralToolResult } from "./neutral-message.ts";
import { callIdsOf } from "./replay-item.ts";
import type { AssistantItem, CallSite, ReplayItem, ResultItem, StepItem } from "./replay-item.ts";
import type { ReplayRules } from "./replay-rules.ts";
import type { AssistantTurn, ReplayCall, ReplayResult, ReplayText, ReplayUserBlock } from "./replay-turn.ts";

/** Replies with more calls use the general pairing, because each call here searches all results. */
const mostCalls = 16;

/**
 * Returns the step at a position: a clean reply directly followed by clean results of all its calls. Returns null
 * otherwise.
 */
export function stepAt(messages: readonly NeutralMessage[], at: number, rules: ReplayRules): StepItem | null {
  const reply = messages[at];
  if (reply?.role !== "assistant" || !isCleanReply(reply, rules)) return null;
  let callCount = 0;
  for (const block of reply.content) if (block.type === "toolCall") callCount++;
  const results = callCount === 0 ? none : resultsFrom(messages, at + 1, callCount);
  if (results === null) return null;
  for (const block of reply.content) {
    if (block.type === "toolCall" && results.every(({ toolCallId }) => toolCallId !== block.id)) return null;
  }
  return { kind: "step", recordId: reply.recordId, place: at, reply, results, turn: 0 };
}

const none: readonly NeutralToolResult[] = [];

/** A reply that needs cleaning cannot be a step, because steps skip all repairs. */
function isCleanReply(reply: NeutralAssistant, rules: ReplayRules): boolean {
  const { content } = reply;
  if (reply.isFragment || reply.isContinued === true || isUnsentReply(reply)) return false;
  for (const block of content) {
    if (block.type === "text") {
      if (!isPlainText(block)) return false;
    } else if (block.type === "toolCall") {
      const isPlain = block.signature === undefined && block.partialJson === undefined;
      if (!isPlain || hasLoneSurrogate(block.arguments)) return false;
    } else if (block.type !== "thinking" || carriedThinking(block, reply, rules)?.itemId !== null) return false;
  }
  // A reply must not end in thinking.
  return content.length > 0 && content[content.length - 1]?.type !== "thinking";
}

function isPlainText(block: NeutralBlock): boolean {
  return block.type === "text" && block.signature === undefined && isCleanText(block.text);
}

function resultsFrom(messages: readonly NeutralMessage[], from: number, count: number): NeutralToolResult[] | null {
  if (count > mostCalls) return null;
  for (let at = from; at < from + count; at++) {
    const result = messages[at];
    if (result?.role !== "toolResult" || result.content.length === 0) return null;
    for (const block of result.content) if (!isPlainText(block)) return null;
  }
  return messages.slice(from, from + count) as NeutralToolResult[];
}

export interface StepList {
  readonly items: readonly ReplayItem[];
  /** Maps call ids to steps. No other item of the list uses these ids. */
  readonly steps: ReadonlyMap<string, StepItem>;
}

/**
 * Splits the steps that the general pairing must check: steps whose id occurs twice, and replies to which another reply
 * may belong. After a reply that is not a step, all steps up to the next user message are split too.
 */
export function* splitDoubtfulSteps(given: readonly ReplayItem[]): Steps<StepList> {
  const { steps, doubtful } = yield* claims(given);
  const items: ReplayItem[] = [];
  let isApart = true;
  for (let at = 0; at < given.length; at++) {
    yield;
    const item = given[at] as ReplayItem;
    if (item.kind !== "step") {
      items.push(item);
      isApart = item.kind === "user" || item.kind === "system";
    } else if (isApart && !doubtful.has(item) && isClosed(item, given[at + 1])) {
      items.push(item);
    } else {
      for (const part of stepItems(item)) items.push(part);
      for (const id of callIdsOf(item)) steps.delete(id);
      isApart = false;
    }
  }
  return { items, steps };
}

/** Checks whether no later item can join the step. The last step stays open, because its successor is still unknown. */
function isClosed(step: StepItem, next: ReplayItem | undefined): boolean {
  return next !== undefined && (step.results.length > 0 || next.kind === "user" || next.kind === "system");
}

interface Claims {
  readonly steps: Map<string, StepItem>;
  readonly doubtful: Set<StepItem>;
}

/**
 * Steps that share a call id or a reply id are doubtful, because pairing must decide which of them a result belongs to.
 */
function* claims(items: readonly ReplayItem[]): Steps<Claims> {
  const steps = new Map<string, StepItem>();
  const replies = new Map<string, StepItem>();
  const doubtful = new Set<StepItem>();
  const claim = (owners: Map<string, StepItem>, id: string, step: StepItem): void => {
    const owner = owners.get(id);
    if (owner === undefined) owners.set(id, step);
    else doubtful.add(owner).add(step);
  };
  let last: StepItem | null = null;
  for (const item of items) {
    yield;
    if (item.kind === "step") {
      last = item;
      const { responseId, content } = item.reply;
      if (responseId !== null) claim(replies, responseId, item);
      for (const block of content) if (block.type === "toolCall") claim(steps, block.id, item);
    } else if (item.kind === "assistant" && item.isFragment && last !== null) doubtful.add(last);
  }
  if (last !== null) doubtful.add(last);
  const doubt = (step: StepItem | undefined): unknown => step !== undefined && doubtful.add(step);
  for (const item of items) {
    yield;
    if (item.kind === "result") doubt(steps.get(item.callId));
    if (item.kind !== "assistant") continue;
    for (const id of callIdsOf(item)) doubt(steps.get(id));
    if (item.responseId !== null) doubt(replies.get(item.responseId));
  }
  return { steps, doubtful };
}

/** Splits a step that turned out to be doubtful. Its blocks are already clean. */
function stepItems({ reply, results, place }: StepItem): [AssistantItem, ...ResultItem[]] {
  const { recordId, responseId, stopReason } = reply;
  const told = { recordId, place, isUnsent: false, isSummary: false, isFragment: false, responseId, stopReason };
  const item: AssistantItem = { kind: "assistant", ...told, blocks: [], kept: [] };
  item.blocks = reply.content.map((block) => itemBlock(block, item));
  item.kept = item.blocks;
  const answers = results.map((result, index): ResultItem => {
    const { toolCallId: callId, toolName, isError, content } = result;
    const at = { recordId: result.recordId, place: place + 1 + index };
    return { kind: "result", ...at, callId, toolName, isError, content: content as ReplayUserBlock[], shownAs: null };
  });
  return [item, ...answers];
}

function itemBlock(block: NeutralBlock, owner: AssistantItem): AssistantItem["blocks"][number] {
  if (block.type === "toolCall") return { type: "callSite", call: block, signature: null, owner, result: null };
  return block.type === "thinking" ? sentThinking(block, null) : (block as ReplayText);
}

/** Builds the call site that pairing needs when another item reuses an id of the step. */
export function stepSite(step: StepItem, id: string): CallSite {
  const [item, ...results] = stepItems(step);
  const site = item.blocks.find((block) => block.type === "callSite" && block.call.id === id) as CallSite;
  site.result = results.find(({ callId }) => callId === id) ?? null;
  return site;
}

/**
 * Returns the results of a step, in the order of their arrival or in the order of the calls.
 *
 * @param sent the blocks of the reply in their sent form, with the ids and names that the provider receives
 */
export function stepResults(step: StepItem, sent: AssistantTurn["blocks"], inCallOrder: boolean): ReplayResult[] {
  const { reply, results } = step;
  const callPlace = ({ toolCallId }: NeutralToolResult): number =>
    reply.content.findIndex((block) => block.type === "toolCall" && block.id === toolCallId);
  const isSorted = inCallOrder && results.length > 1;
  const ordered = isSorted ? results.toSorted((one, other) => callPlace(one) - callPlace(other)) : results;
  return ordered.map((result) => {
    const call = sent[callPlace(result)] as ReplayCall;
    const { recordId, isError } = result;
    return { recordId, callId: call.id, name: call.name, content: result.content as ReplayText[], isError };
  });
}
