import { isFields } from "@throughline/core/internal";
import type { ModelName } from "@throughline/tokens/internal";
import { fingerprint } from "./fingerprint.ts";
import { bytesOf, type GuardChange } from "./guard-change.ts";
import type { OverflowKind } from "./overflow.ts";

const thinkingTypes: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"]);

/**
 * Returns true for the Claude models whose signatures cover everything before the thinking: Fable and Mythos from 5.1,
 * the others from 5.5. These models refuse a request when content before a signed block was changed.
 */
export function bindsThinking({ modelId }: ModelName): boolean {
  const [, family = "", major, minor] =
    /claude-([a-z]{1,20})-(\d{1,9})(?:[.-](\d{1,2})(?!\d))?/.exec(modelId.toLowerCase()) ?? [];
  const version = Number(major ?? 0) * 100 + Number(minor ?? 0);
  return version >= (family === "fable" || family === "mythos" ? 501 : 505);
}

/** Selects the thinking to remove, by the index of its reply or by the block. */
type IsOut = (index: number, block: object) => boolean;

/** Removes signed thinking from the replies at or after `fromIndex`. The text and the calls of the model stay. */
export function stripThinking(messages: readonly unknown[], fromIndex: number): readonly unknown[] {
  return withoutThinking(messages, (index) => index >= fromIndex);
}

/** Returns the same list when nothing is removed, so that callers can compare references. */
function withoutThinking(messages: readonly unknown[], isOut: IsOut): readonly unknown[] {
  let changed: unknown[] | null = null;
  for (const [index, message] of messages.entries()) {
    const content = thinkingContent(message);
    const kept = content?.filter((block) => !isThinking(block) || !isOut(index, block));
    if (content === null || kept === undefined || kept.length === content.length) continue;
    changed ??= [...messages];
    changed[index] = {
      ...(message as object),
      content: kept.length > 0 ? kept : [{ type: "text", text: "[thinking left out]" }],
    };
  }
  return changed ?? messages;
}

function thinkingContent(message: unknown): readonly unknown[] | null {
  if (!isFields(message) || message["role"] !== "assistant" || !Array.isArray(message["content"])) return null;
  return message["content"] as readonly unknown[];
}

function isThinking(block: unknown): block is object {
  return isFields(block) && thinkingTypes.has(block["type"]);
}

/** Records the removed thinking for later calls; null when none was removed. */
export function thinkingChange(
  before: readonly unknown[],
  after: readonly unknown[],
  reason: OverflowKind,
): GuardChange | null {
  const gone: object[] = [];
  let first = -1;
  for (const [index, message] of before.entries()) {
    if (message === after[index]) continue;
    const blocks = (thinkingContent(message) ?? []).filter(isThinking);
    if (blocks.length > 0 && first === -1) first = index;
    gone.push(...blocks);
  }
  if (gone.length === 0) return null;
  const beforeBytes = gone.reduce((sum, block) => sum + bytesOf(JSON.stringify(block)), 0);
  const blocks = gone.map(fingerprint);
  return { recordId: null, index: first, callId: null, what: "thinking", reason, beforeBytes, afterBytes: 0, blocks };
}

/**
 * Removes the thinking that earlier calls removed. An earlier call may have replaced the start of the history for
 * itself alone. The first message of the history is then unchanged. The thinking up to that point is removed too,
 * because no later call repeats the history that it is bound to.
 */
export function reapplyThinking(messages: readonly unknown[], changes: readonly GuardChange[]): readonly unknown[] {
  const gone = new Set(changes.flatMap(({ what, blocks }) => (what === "thinking" ? (blocks ?? []) : [])));
  const [first] = messages;
  let until = -1;
  for (const { what, instead } of changes) {
    if (what !== "history" || instead === undefined || !isFields(first)) continue;
    if (fingerprint(first) === instead.first) until = Math.max(until, instead.messages);
  }
  if (gone.size === 0 && until === -1) return messages;
  return withoutThinking(messages, (index, block) => index <= until || gone.has(fingerprint(block)));
}
