/** What a message that a memory flush put into the conversation carries as `message.source`. */
const flushSource = "flush";

/**
 * Whether a record is a user message that nobody typed: a memory flush put it there. Such messages are sent like any
 * other, and left out of summaries and of every count of what the user said.
 */
export function isFlushMessage(record: { readonly [field: string]: unknown }): boolean {
  const message = record["type"] === "message" ? record["message"] : null;
  if (typeof message !== "object" || message === null) return false;
  const { role, source } = message as { readonly role?: unknown; readonly source?: unknown };
  return role === "user" && source === flushSource;
}
