import { assembleTurns } from "./assemble-turns.ts";
import type { Context } from "./build-context.ts";
import { collectItems } from "./collect-items.ts";
import { summaryPrefixes } from "./message-texts.ts";
import { pairCalls } from "./pair-calls.ts";
import { createRepairLog, type Repair } from "./repair.ts";
import type { ReplayRules } from "./replay-rules.ts";
import type { AssistantTurn, ReplayImage, ReplayResult, ReplayText, ReplayTurn } from "./replay-turn.ts";

export interface AnthropicRenderOptions {
  /** The system prompt to send along. @default null */
  readonly system?: string | null;
  /** The model that gets the messages; signed thinking of other models is left out. @default the context's model */
  readonly target?: { readonly provider: string; readonly modelId: string } | null;
  /** First line of the message that carries a summary. @default "[Previous conversation summary]" */
  readonly summaryPrefix?: string;
  /** What becomes of a result whose call is not in the history. @default "drop" */
  readonly orphanResults?: "drop" | "text";
  /**
   * What becomes of an assistant message at the end, which newer models refuse to continue: it stays, for a history to
   * which a prompt is added; it goes; or a short user message follows it. @default "keep"
   */
  readonly trailingAssistant?: "keep" | "remove" | "continue";
}

export interface AnthropicRendering {
  readonly system: string | null;
  /** Ready to be sent; empty when the context is. */
  readonly messages: readonly AnthropicMessage[];
  /** Every change that was made to what the log says. */
  readonly repairs: readonly Repair[];
  /** The id in the log of every call whose id was changed, by the id that is sent. */
  readonly callIds: ReadonlyMap<string, string>;
}

export interface AnthropicMessage {
  readonly role: "user" | "assistant";
  readonly content: readonly AnthropicBlock[];
}

/** A content block as the Messages API writes it. */
export type AnthropicBlock =
  | ReplayText
  | { readonly type: "image"; readonly source: Readonly<Record<string, unknown>> }
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | { readonly type: "redacted_thinking"; readonly data: string }
  | {
      readonly type: "tool_use";
      readonly id: string;
      readonly name: string;
      readonly input: Readonly<Record<string, unknown>>;
    }
  | {
      readonly type: "tool_result";
      readonly tool_use_id: string;
      readonly content?: readonly (ReplayText | ReplayImage)[];
      readonly is_error?: true;
    };

const idCharacters = /[^a-zA-Z0-9_-]/g;

/** The messages for Anthropic's API: valid whatever the log holds, and otherwise as the log says. */
export function renderAnthropic(context: Context, options: AnthropicRenderOptions = {}): AnthropicRendering {
  const rules: ReplayRules = {
    target: options.target === undefined ? context.model : options.target,
    summaryPrefix: options.summaryPrefix ?? (summaryPrefixes[0] as string),
    orphanResults: options.orphanResults ?? "drop",
    trailingAssistant: options.trailingAssistant ?? "keep",
    callIds: { forbidden: idCharacters, maxLength: 64 },
    toolNames: { forbidden: idCharacters, maxLength: 64 },
    imageTypes: new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]),
  };
  const { repairs, report } = createRepairLog();
  const items = collectItems(context, rules, report);
  pairCalls(items, rules, report);
  const { turns, callIds } = assembleTurns(items, rules, report);
  return { system: options.system ?? null, messages: turns.map(messageOf), repairs, callIds };
}

function messageOf(turn: ReplayTurn): AnthropicMessage {
  if (turn.role === "assistant") return { role: "assistant", content: turn.blocks.map(assistantBlock) };
  return { role: "user", content: [...turn.results.map(resultBlock), ...turn.blocks] };
}

function assistantBlock(block: AssistantTurn["blocks"][number]): AnthropicBlock {
  switch (block.type) {
    case "text":
      return block;
    case "toolCall":
      return { type: "tool_use", id: block.id, name: block.name, input: block.arguments };
    case "thinking":
      return block.redacted
        ? { type: "redacted_thinking", data: block.signature }
        : { type: "thinking", thinking: block.thinking, signature: block.signature };
  }
}

function resultBlock(result: ReplayResult): AnthropicBlock {
  return {
    type: "tool_result",
    tool_use_id: result.callId,
    ...(result.content.length > 0 ? { content: result.content } : {}),
    ...(result.isError ? { is_error: true } : {}),
  };
}
