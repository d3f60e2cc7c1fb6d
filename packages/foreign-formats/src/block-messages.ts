import type { Fields } from "@throughline/core/internal";
import { recordsFromMessages } from "@throughline/history/anthropic";
import { shownText } from "./as-text.ts";
import { attempt, plainMessage } from "./mapped-messages.ts";
import type { RecordBody } from "./unit-records.ts";

export interface ReplyAuthor {
  readonly model?: unknown;
  readonly provider?: unknown;
}

/**
 * Converts messages with Anthropic's blocks to records; null when they cannot be read.
 * @param isSigned whether their thinking has a signature of Anthropic
 */
export function blockBodies(
  given: readonly Fields[],
  { model, provider: stated }: ReplyAuthor,
  isSigned: boolean,
): readonly RecordBody[] | null {
  const author = typeof model === "string" && model !== "" ? { model } : {};
  const provider = typeof stated === "string" && stated !== "" ? stated : undefined;
  const asked = isSigned
    ? { ...author, provider: "anthropic" }
    : { ...author, ...(provider === undefined ? {} : { provider }) };
  const drafts = attempt(() => recordsFromMessages(given, asked));
  return (
    drafts?.map((draft) => {
      const { api, provider: mapped, ...message } = plainMessage(draft.message);
      if (message["role"] !== "assistant") return { type: "message", message };
      // Such messages do not state their model. Only a signature proves that Anthropic's model wrote them.
      const known = isSigned ? { api, provider: mapped } : provider === undefined ? {} : { provider };
      return { type: "message", message: { ...message, ...known } };
    }) ?? null
  );
}

/** Returns the block of a text, and none for an empty one. A value of another form becomes its JSON. */
export function textBlock(value: unknown): readonly Fields[] {
  const text = shownText(value);
  return text === "" ? [] : [{ type: "text", text }];
}

export function hasSignature(blocks: readonly Fields[]): boolean {
  return blocks.some(
    ({ type, signature }) =>
      type === "redacted_thinking" || (type === "thinking" && typeof signature === "string" && signature !== ""),
  );
}

/** True for a model whose signatures are Anthropic's. Programs keep the thinking of other models in the same form. */
export function isClaude(model: unknown): boolean {
  return typeof model === "string" && model.toLowerCase().includes("claude");
}
