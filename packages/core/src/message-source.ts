type Fields = { readonly [field: string]: unknown };

/**
 * Returns whether a record is a user message that a memory flush added, not a person. Such a message is sent like any
 * other, but summaries and counts of the user's messages leave it out.
 */
export function isFlushMessage(record: Fields): boolean {
  return userSource(record) === "flush";
}

/**
 * Returns whether a record is a user message that requests the rest of the previous reply, which was cut off. The
 * message makes that reply part of the request.
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
