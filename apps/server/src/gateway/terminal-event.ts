import type { IncomingMessage } from "node:http";
import { isFields } from "@throughline/core/internal";
import { isLineWithinBounds } from "./json-bounds.ts";

/** What the last event of a stream is, in any of the APIs. */
const lastTypes: ReadonlySet<unknown> = new Set([
  "message_stop",
  "response.completed",
  "response.failed",
  "response.incomplete",
]);
/** A line without any of these is no last event, and is not parsed. */
const marks: readonly string[] = [...[...lastTypes].map(String), "[DONE]", '"done"'];
/** A longer line is not looked at. What stands at the end of an answer is held back all the same. */
const longestLine = 32 * 1024 * 1024;

/**
 * Says of each chunk of an answer, in their order, whether a client may take the answer for ended with it: by its length, or
 * by the provider's last event. What the model quotes is no event. A line that has no end yet is none either.
 */
export function endOf({ headers }: IncomingMessage): (chunk: Buffer) => boolean {
  // The end of what is packed is not seen: all of it waits.
  if ((headers["content-encoding"] ?? "identity").toLowerCase() !== "identity") return () => true;
  const length = headers["content-length"] === undefined ? null : Number(headers["content-length"]);
  const decoder = new TextDecoder();
  let bytes = 0;
  let line = "";
  return (chunk) => {
    bytes += chunk.length;
    if (length !== null) return bytes >= length;
    const parts = decoder.decode(chunk, { stream: true }).split(/[\r\n]/);
    let isEnd = false;
    for (const [index, part] of parts.entries()) {
      line = line.length > longestLine ? line : line + part;
      if (index === parts.length - 1) return isEnd;
      isEnd ||= isLast(line);
      line = "";
    }
    return isEnd;
  };
}

/** Whether a line is the last event of a stream, or names it. */
function isLast(line: string): boolean {
  if (!marks.some((mark) => line.includes(mark)) || !isLineWithinBounds(line)) return false;
  if (line.startsWith("event:")) return lastTypes.has(line.slice("event:".length).trim());
  const data = (line.startsWith("data:") ? line.slice("data:".length) : line).trim();
  if (data === "[DONE]") return true;
  try {
    const event: unknown = JSON.parse(data);
    return isFields(event) && (lastTypes.has(event["type"]) || event["done"] === true);
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
