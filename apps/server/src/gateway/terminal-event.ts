import type { IncomingMessage } from "node:http";

/** What the last event of a stream holds, in any of the APIs. */
const terminals: readonly Buffer[] = [
  "message_stop",
  "[DONE]",
  "response.completed",
  "response.failed",
  "response.incomplete",
  '"done":true',
  '"done": true',
].map((text) => Buffer.from(text));
const longest = Math.max(...terminals.map(({ length }) => length));

/**
 * Says of each chunk of an answer, in their order, whether a client may take the answer for ended with it: by its length, or
 * by the provider's last event.
 */
export function endOf({ headers }: IncomingMessage): (chunk: Buffer) => boolean {
  const length = headers["content-length"] === undefined ? null : Number(headers["content-length"]);
  let bytes = 0;
  let tail = Buffer.alloc(0);
  return (chunk) => {
    bytes += chunk.length;
    if (length !== null) return bytes >= length;
    const text = Buffer.concat([tail, chunk]);
    tail = Buffer.from(text.subarray(Math.max(0, text.length - longest)));
    return terminals.some((terminal) => text.includes(terminal));
  };
}
