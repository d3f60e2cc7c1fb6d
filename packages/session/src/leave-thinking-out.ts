/** Messages whose thinking is not sent any more: from an index up to, not including, another. */
export type ThinkingRange = readonly [fromIndex: number, toIndex: number];

type Fields = Readonly<Record<string, unknown>>;

const thinkingTypes: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"]);

/**
 * The messages without the signed thinking of some replies. Some models sign thinking together with all that stood before
 * it: once a result before it was shortened it would be refused, in this call and in every later one. The same way of
 * taking it out as the guard's, so that both give the same bytes.
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
