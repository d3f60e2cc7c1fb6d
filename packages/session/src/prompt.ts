import { createHash } from "node:crypto";
import type { ToolDefinition } from "@throughline/core";
import { applyChanges, type GuardChange } from "@throughline/guard/internal";
import { type Actual, type AheadCounter, isPossibleCount, type TokenCounter } from "@throughline/tokens/internal";
import { type ContextEstimate, estimateContext, lastActual } from "@throughline/tokens";
import type { Rendering, WindowCut } from "@throughline/history/internal";
import type { Calibration } from "@throughline/tokens/internal";
import { runInSlices } from "@throughline/core/internal";
import { leaveThinkingOut } from "./leave-thinking-out.ts";
import type { SessionLog } from "./session-log.ts";
import { mappingFor } from "./session-log.ts";

/** Holds the system prompt and the tools, which every request of a turn begins with. */
export interface PromptPrefix {
  readonly system: string | null;
  readonly tools: readonly ToolDefinition[];
  readonly systemHash: string | null;
  readonly toolsHash: string | null;
}

/** Holds the messages of the log, with the system prompt in the position that the provider expects. */
export interface Prompt {
  /** Holds the system prompt for a field of its own; null when it is one of the messages. */
  readonly system: string | null;
  readonly messages: readonly unknown[];
  readonly rendering: Rendering<unknown>;
  /** Names the last record that the prompt was built from, and the head. */
  readonly toSeq: number;
  readonly headId: string | null;
  /** States where the history was cut; null when it is whole. */
  readonly cut: WindowCut | null;
}

/**
 * Combines the system prompt with the messages of the log.
 *
 * @param changes the changes of earlier requests, for prompts that do not pass the guard. The guard applies them
 * itself. Default: none
 */
export function promptOf(log: SessionLog, system: string | null, changes: readonly GuardChange[] = []): Prompt {
  const rendering = log.history.render();
  const { lastSeq: toSeq, headId } = log.head;
  const whole = withSystem(log.target.api, rendering.messages, system);
  const messages = applyChanges(leaveThinkingOut(whole.messages, log.facts.thinkingOut), changes);
  return { ...whole, messages, rendering, toSeq, headId, cut: log.cut };
}

/** Some providers expect the system prompt in a separate field, and others as the first message. */
export function withSystem(
  api: string,
  messages: readonly unknown[],
  system: string | null,
): { readonly system: string | null; readonly messages: readonly unknown[] } {
  if (system === null || messages.length === 0) return { system, messages };
  const { field, first } = mappingFor(api).system(system);
  return { system: field, messages: first.length === 0 ? messages : [...first, ...messages] };
}

const hashes = new WeakMap<readonly ToolDefinition[], string>();
let lastSystem: { readonly text: string; readonly hash: string } | null = null;

/** The same prompt is sent call after call, so its hash is computed once. */
export function prefixOf(system: string | null, tools: readonly ToolDefinition[]): PromptPrefix {
  if (system !== null && lastSystem?.text !== system) lastSystem = { text: system, hash: shortHash(system) };
  const systemHash = system === null ? null : (lastSystem?.hash ?? null);
  return { system, tools, systemHash, toolsHash: toolsHashOf(tools) };
}

export function toolsHashOf(tools: readonly ToolDefinition[]): string | null {
  if (tools.length === 0) return null;
  const known = hashes.get(tools) ?? shortHash(JSON.stringify(tools));
  hashes.set(tools, known);
  return known;
}

export function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}

/**
 * Returns the measured size of the last call and how many messages it covers. Null when every message must be counted.
 * If the system prompt or the tools changed since, the difference of their estimates is added. The record of the call
 * holds its estimate, so that a new process starts from the same count.
 */
export function measuredSize(
  log: SessionLog,
  messages: readonly unknown[],
  prefix: PromptPrefix,
  counter: TokenCounter,
): Actual | null {
  if (log.facts.isCountInMessages) return countInMessages(log, messages, counter);
  const { measured } = log.facts;
  if (measured === null) return null;
  const { call, occupancyTokens } = measured;
  const { api, provider, modelId } = log.target;
  if (call.api !== api || call.provider !== provider || call.model !== modelId) return null;
  const coversMessages = endOfReply(messages, call.messageCount);
  if (coversMessages === call.messageCount) return null;
  const ofMessages = occupancyTokens - (call.prefixTokens ?? 0);
  if (!isPossibleCount(ofMessages, messages as readonly object[], coversMessages, counter.model)) return null;
  const isSamePrefix = call.systemHash === prefix.systemHash && call.toolsHash === prefix.toolsHash;
  if (isSamePrefix) return { tokens: occupancyTokens, coversMessages };
  // Older versions wrote records without this field.
  if (call.prefixTokens === null) return null;
  const changed = prefixTokens(prefix, counter) - call.prefixTokens;
  return { tokens: Math.max(0, occupancyTokens + changed), coversMessages };
}

/** Counts with the tokenizer, corrected by the factor that the model's counts are known to differ by. */
export function prefixTokens({ system, tools }: PromptPrefix, counter: TokenCounter): number {
  const bare = (system === null ? 0 : counter.countText(system)) + counter.countTools(tools).bareTokens;
  return Math.round(bare * counter.profile.factor);
}

/**
 * Returns the count that the newest reply states, if it is valid, and how many messages of the request it covers. The
 * count refers to the neutral context, whose messages do not match the request one by one. Groups of consecutive
 * replies match, so the position is found by counting them.
 */
function countInMessages(log: SessionLog, messages: readonly unknown[], counter: TokenCounter): Actual | null {
  const context = log.history.context().messages.filter((message) => !isBrokenOff(message));
  const actual = lastActual(context, counter.model);
  if (actual === null) return null;
  let replies = context
    .slice(actual.coversMessages)
    .filter(
      (message, index, rest) => message.role === "assistant" && index > 0 && rest[index - 1]?.role !== "assistant",
    );
  let end = messages.length;
  for (;;) {
    while (end > 0 && !isOfModel(messages[end - 1])) end -= 1;
    if (replies.length === 0) return end === 0 ? null : { tokens: actual.tokens, coversMessages: end };
    replies = replies.slice(1);
    while (end > 0 && isOfModel(messages[end - 1])) end -= 1;
  }
}

/** Interrupted replies are not sent, unless the next message asks to continue one. */
function isBrokenOff(message: {
  readonly role: string;
  readonly stopReason?: unknown;
  readonly isContinued?: true;
}): boolean {
  if (message.role !== "assistant" || message.isContinued === true) return false;
  return message.stopReason === "aborted" || message.stopReason === "error";
}

/** The reply to the first `from` messages ends before the next message that no model wrote. */
function endOfReply(messages: readonly unknown[], from: number): number {
  let end = from;
  while (end < messages.length && isOfModel(messages[end])) end += 1;
  return end;
}

function isOfModel(message: unknown): boolean {
  const { role, type } = message as { readonly role?: unknown; readonly type?: unknown };
  return role === undefined ? type !== "function_call_output" : role === "assistant" || role === "model";
}

export interface EstimateContext {
  readonly counter: AheadCounter;
  readonly calibration: Calibration;
  readonly actual: Actual | null;
}

/** Counting a long session takes seconds. It is done in slices, so that other work is not blocked. */
export async function estimatePrompt(
  prompt: Pick<Prompt, "system" | "messages">,
  tools: readonly ToolDefinition[],
  context: EstimateContext,
): Promise<ContextEstimate> {
  const { system, messages } = prompt;
  await runInSlices(context.counter.countAhead(messages as readonly object[], context.actual?.coversMessages));
  return estimateContext({ messages: messages as readonly object[], system, tools }, context);
}
