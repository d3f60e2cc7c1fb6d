import type { NeutralAssistant, NeutralToolCall, NeutralToolResult } from "./neutral-message.ts";
import type { ReplayRaw, ReplayText, ReplayThinking, ReplayUserBlock } from "./replay-turn.ts";

/**
 * Holds a message before it becomes part of a turn. Its blocks are clean, but calls and results are not matched yet.
 */
export type ReplayItem = UserItem | AssistantItem | ResultItem | SystemItem | StepItem;

export interface UserItem {
  readonly kind: "user";
  readonly recordId: string;
  readonly place: number;
  readonly isSummary: boolean;
  blocks: readonly ReplayUserBlock[];
}

export interface SystemItem {
  readonly kind: "system";
  readonly recordId: string;
  readonly place: number;
  readonly text: string;
}

export interface AssistantItem {
  readonly kind: "assistant";
  readonly recordId: string;
  readonly place: number;
  /** Is true for an aborted, failed or waiting reply, which is not sent, and neither are the results of its calls. */
  readonly isUnsent: boolean;
  /** Is true for the provider's own summary of earlier messages. No other item joins it. */
  readonly isSummary: boolean;
  readonly isFragment: boolean;
  readonly responseId: string | null;
  readonly stopReason: string | null;
  blocks: readonly AssistantItemBlock[];
  /** Excludes calls that were stored twice. Each pairing sets the list again. */
  kept: readonly AssistantItemBlock[];
}

export type AssistantItemBlock = ReplayText | ReplayThinking | ReplayRaw | CallSite;

/** Identifies one occurrence of a call, because providers reuse ids. */
export interface CallSite {
  readonly type: "callSite";
  readonly call: NeutralToolCall;
  readonly signature: string | null;
  readonly owner: AssistantItem;
  /** Each pairing sets the result again. */
  result: ResultItem | null;
}

export interface ResultItem {
  readonly kind: "result";
  readonly recordId: string;
  readonly place: number;
  readonly callId: string;
  readonly toolName: string | null;
  readonly isError: boolean;
  content: readonly ReplayUserBlock[];
  /** States why the result is sent as user text; null otherwise. Each pairing sets it again. */
  shownAs: "orphan" | "late" | null;
}

/**
 * Combines a reply with the results of all its calls that directly follow it. All blocks are clean, and no other item
 * interacts with it. Most of a long log consists of steps, which need no call sites and no search for results.
 */
export interface StepItem {
  readonly kind: "step";
  readonly recordId: string;
  readonly place: number;
  readonly reply: NeutralAssistant;
  readonly results: readonly NeutralToolResult[];
  /** Counts the user messages before the step. Each pairing sets it again. */
  turn: number;
}

export function callIdsOf(item: AssistantItem | StepItem): string[] {
  if (item.kind === "step") return item.reply.content.flatMap((block) => (block.type === "toolCall" ? [block.id] : []));
  return item.blocks.flatMap((block) => (block.type === "callSite" ? [block.call.id] : []));
}
