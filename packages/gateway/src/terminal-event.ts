import type { IncomingMessage } from "node:http";
import { isFields } from "@throughline/core/internal";
import { isLineWithinBounds } from "./json-bounds.ts";

const lastTypes: ReadonlySet<unknown> = new Set([
  "message_stop",
  "response.completed",
  "response.failed",
  "response.incomplete",
]);
/** Lets lines without any of these marks pass unparsed, so that few lines of a stream are parsed. */
const marks: readonly string[] = [...[...lastTypes].map(String), "[DONE]", '"done"'];
/** Limits the memory for one line. The end of the answer is held back even when the line is not parsed. */
const longestLine = 32 * 1024 * 1024;

/**
 * Returns a test for the chunks of an answer, called in order. It is true when the client may consider the answer
 * complete, by content length or by the provider's last event. Only a complete line counts as an event, so text that
 * the model quotes does not.
 */
export function endOf({ headers }: IncomingMessage): (chunk: Buffer) => boolean {
  // The end of a compressed body cannot be detected, so every chunk is held back.
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
