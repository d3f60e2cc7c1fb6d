/** Gives a range of messages without their thinking, from an index up to, not including, another. */
export type ThinkingRange = readonly [fromIndex: number, toIndex: number];

type Fields = Readonly<Record<string, unknown>>;

const thinkingTypes: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"]);

/**
 * Removes the signed thinking of some replies. Some models sign thinking together with everything before it. After a
 * result before it was shortened, the provider would refuse it in this and every later call. The guard removes thinking
 * in the same way, so that both give the same bytes.
 */
export function leaveThinkingOut(messages: readonly unknown[], ranges: readonly ThinkingRange[]): readonly unknown[] {
  if (ranges.length === 0) return messages;
  return messages.map((message, index) =>
    ranges.some(([from, to]) => index >= from && index < to) ? withoutThinking(message) : message,
  );
}

function withoutThinking(message: unknown): unknown {
  const { role, content } = message as Fields;
  if (role !== "assistant" || !Array.isArray(content)) return message;
  const kept = content.filter((block: Fields | null) => !thinkingTypes.has(block?.["type"]));
  if (kept.length === content.length) return message;
  return { ...(message as Fields), content: kept.length > 0 ? kept : [{ type: "text", text: "[thinking left out]" }] };
}
