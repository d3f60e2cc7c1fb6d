import type { NeutralToolCall } from "./neutral-message.ts";
import type { ReplayImage, ReplayText, ReplayThinking } from "./replay-turn.ts";

/** A message on its way into a turn: its blocks are clean, its calls and results are not matched yet. */
export type ReplayItem = UserItem | AssistantItem | ResultItem;

export interface UserItem {
  readonly kind: "user";
  readonly recordId: string;
  readonly isSummary: boolean;
  readonly blocks: readonly (ReplayText | ReplayImage)[];
}

export interface AssistantItem {
  readonly kind: "assistant";
  readonly recordId: string;
  /** Aborted or failed: it and its calls' results are left out. */
  readonly isFailed: boolean;
  /** A call stored apart from its reply. */
  readonly isFragment: boolean;
  readonly responseId: string | null;
  readonly stopReason: string | null;
  /** A call that turns out to be stored twice is taken out. */
  blocks: (ReplayText | ReplayThinking | CallSite)[];
}

/** One occurrence of a call: providers use ids again, so an id alone does not tell which call is meant. */
export interface CallSite {
  readonly type: "callSite";
  readonly call: NeutralToolCall;
  readonly owner: AssistantItem;
  result: ResultItem | null;
  /** The id the provider gets. */
  wireId: string;
}

export interface ResultItem {
  readonly kind: "result";
  readonly recordId: string;
  readonly callId: string;
  readonly toolName: string | null;
  readonly isError: boolean;
  readonly content: readonly (ReplayText | ReplayImage)[];
  /** Without a call, and to be shown as user text. */
  isShownAsText: boolean;
}

export function callSitesOf(item: AssistantItem): CallSite[] {
  return item.blocks.filter((block): block is CallSite => block.type === "callSite");
}
