type Fields = { readonly [field: string]: unknown };

/**
 * Whether a record is a user message that nobody typed: a memory flush put it there. Such messages are sent like any
 * other, and left out of summaries and of every count of what the user said.
 */
export function isFlushMessage(record: Fields): boolean {
  return userSource(record) === "flush";
}

/**
 * Whether a record is a user message that asks for the rest of the reply before it, which was broken off. It makes that reply
 * part of what is sent.
 */
export function isContinueMessage(record: Fields): boolean {
  return userSource(record) === "continue";
}

function userSource(record: Fields): unknown {
  const message = record["type"] === "message" ? record["message"] : null;
  if (typeof message !== "object" || message === null) return null;
  const { role, source } = message as Fields;
  return role === "user" ? source : null;
}
