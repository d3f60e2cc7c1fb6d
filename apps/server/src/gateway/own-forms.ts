import { isFields } from "@throughline/core/internal";

/** The types of the blocks of a message. */
export function blockTypes(message: unknown): readonly string[] {
  const content = isFields(message) ? message["content"] : null;
  const blocks = Array.isArray(content) ? (content as readonly unknown[]).filter(isFields) : [];
  return blocks.flatMap(({ type }) => (typeof type === "string" ? [type] : []));
}

/** What a client wrote stays as it wrote it, with its marks of a cache, where a rendered message says the same. */
export function withOwnForms(messages: readonly unknown[], values: readonly unknown[]): readonly unknown[] {
  const own = values.map(plainForm);
  // From the end: the newest message is the one that a mark stands on.
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

/** A message without what may be written in several ways. */
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
