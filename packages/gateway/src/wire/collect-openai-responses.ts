import { type Fields, isFields, parsedFields } from "@throughline/core/internal";
import type { CollectedReply } from "./collected-reply.ts";
import { textOr } from "./json-fields.ts";
import type { StreamEvent } from "./read-events.ts";

const endings = new Set<unknown>(["response.completed", "response.incomplete", "response.failed"]);

/**
 * Collects a streamed response. The last event contains the whole response, so the other events matter only for a
 * stream that ended early.
 */
export function collectOpenAiResponses(events: readonly StreamEvent[]): CollectedReply {
  const items = new Map<number, Fields>();
  const texts = new Map<number, string>();
  const unknown: string[] = [];
  let head: Fields | null = null;
  let error: string | null = null;
  for (const { data } of events) {
    const event = parsedFields(data);
    const type = event?.["type"];
    const index = Number(event?.["output_index"]);
    if (event === null) {
      if (data !== "[DONE]") unknown.push(data);
    } else if (endings.has(type) && isFields(event["response"])) {
      const failed = type === "response.failed" ? data : null;
      return { reply: event["response"], isEnded: true, error: failed, unknown };
    } else if (isFields(event["response"])) head = event["response"];
    else if (type === "error") error = data;
    else if (type === "response.output_item.done" && isFields(event["item"])) items.set(index, event["item"]);
    else if (type === "response.output_text.delta")
      texts.set(index, (texts.get(index) ?? "") + textOr(event["delta"], ""));
    else if (typeof type !== "string" || !type.startsWith("response.")) unknown.push(data);
  }
  for (const [index, text] of texts)
    if (!items.has(index))
      items.set(index, { type: "message", role: "assistant", content: [{ type: "output_text", text }] });
  const output = [...items].toSorted(([one], [other]) => one - other).map(([, item]) => item);
  return { reply: head === null ? null : { ...head, output }, isEnded: false, error, unknown };
}
