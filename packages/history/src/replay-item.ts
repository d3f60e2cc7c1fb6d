import type { NeutralAssistant, NeutralToolCall, NeutralToolResult } from "./neutral-message.ts";
import type { ReplayRaw, ReplayText, ReplayThinking, ReplayUserBlock } from "./replay-turn.ts";

/** A message on its way into a turn: its blocks are clean, its calls and results are not matched yet. */
export type ReplayItem = UserItem | AssistantItem | ResultItem | SystemItem | StepItem;

export interface UserItem {
  readonly kind: "user";
  readonly recordId: string;
  /** Where its message stands in the context. */
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
  /** Aborted or failed: it and its calls' results are left out. */
  readonly isFailed: boolean;
  /** The provider's own summary of what came before: nothing joins it. */
  readonly isSummary: boolean;
  /** A call stored apart from its reply. */
  readonly isFragment: boolean;
  readonly responseId: string | null;
  readonly stopReason: string | null;
  /** As they are in the log. */
  blocks: readonly AssistantItemBlock[];
  /** Without calls that turn out to be stored twice. Each pairing sets it again. */
  kept: readonly AssistantItemBlock[];
}

export type AssistantItemBlock = ReplayText | ReplayThinking | ReplayRaw | CallSite;

/** One occurrence of a call: providers use ids again, so an id alone does not tell which call is meant. */
export interface CallSite {
  readonly type: "callSite";
  readonly call: NeutralToolCall;
  readonly signature: string | null;
  readonly owner: AssistantItem;
  /** Each pairing sets it again. */
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
  /** Shown as user text where it stands, and why. Each pairing sets it again. */
  shownAs: "orphan" | "late" | null;
}

/**
 * A reply with the results of all its calls right after it, in which nothing has to be cleaned and nobody else has to do
 * with. Nearly everything of a long log: it needs no items, no call sites and no looking for results.
 */
export interface StepItem {
  readonly kind: "step";
  readonly recordId: string;
  readonly place: number;
  readonly reply: NeutralAssistant;
  /** In the order they came in. */
  readonly results: readonly NeutralToolResult[];
  /** The user messages before it. Each pairing sets it again. */
  turn: number;
}

/** The ids of all its calls, in the log's words. */
export function callIdsOf(item: AssistantItem | StepItem): string[] {
  if (item.kind === "step") return item.reply.content.flatMap((block) => (block.type === "toolCall" ? [block.id] : []));
  return item.blocks.flatMap((block) => (block.type === "callSite" ? [block.call.id] : []));
}
