import { isFields } from "@throughline/core/internal";

export function blockTypes(message: unknown): readonly string[] {
  const content = isFields(message) ? message["content"] : null;
  const blocks = Array.isArray(content) ? (content as readonly unknown[]).filter(isFields) : [];
  return blocks.flatMap(({ type }) => (typeof type === "string" ? [type] : []));
}

/**
 * Replaces rendered messages by the client's equal messages. This keeps the client's formatting and its `cache_control`
 * marks, so the provider's prompt cache still matches.
 */
export function withOwnForms(messages: readonly unknown[], values: readonly unknown[]): readonly unknown[] {
  const own = values.map(plainForm);
  // Match from the end, because clients put the cache mark on the newest message.
  let last = own.length - 1;
  return messages
    .toReversed()
    .map((message) => {
      const at = own.lastIndexOf(plainForm(message), last);
      if (at === -1 || last < 0) return message;
      last = at - 1;
      return values[at];
    })
    .toReversed();
}

/**
 * Normalizes a message: cache marks, null members and the order of members do not count, and a text equals one text
 * block.
 */
function plainForm(message: unknown): string {
  return JSON.stringify(plainValue(message));
}

function plainValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainValue);
  if (!isFields(value)) return value;
  const entries = Object.entries(value).filter(
    ([name, inner]) => name !== "cache_control" && inner !== null && inner !== undefined,
  );
  return entries
    .map(([name, inner]) => [
      name,
      name === "content" && typeof inner === "string"
        ? [
            [
              ["text", inner],
              ["type", "text"],
            ],
          ]
        : plainValue(inner),
    ])
    .toSorted(([one], [other]) => (String(one) < String(other) ? -1 : 1));
}
