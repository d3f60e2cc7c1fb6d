import { type Fields, isFields, parsedFields } from "@throughline/core/internal";
import type { CollectedReply } from "./collected-reply.ts";
import { listOf, textOr } from "./json-fields.ts";
import type { StreamEvent } from "./read-events.ts";

/** Lists the texts that grow from chunk to chunk. Servers other than OpenAI's send thinking beside the content. */
const texts = ["content", "refusal", "reasoning_content", "reasoning", "thinking"] as const;

/** Collects a streamed completion. Only the first choice counts, as in every other reader. */
export function collectOpenAiChat(events: readonly StreamEvent[]): CollectedReply {
  const message: Record<string, unknown> = {};
  const calls = new Map<number, Record<string, unknown>>();
  const unknown: string[] = [];
  let head: Fields | null = null;
  let usage: unknown = null;
  let finish: unknown = null;
  let isEnded = false;
  let error: string | null = null;
  for (const { data } of events) {
    if (data === "[DONE]") {
      isEnded = true;
      continue;
    }
    const chunk = parsedFields(data);
    if (chunk !== null && isFields(chunk["error"])) error = data;
    else if (chunk === null || !Array.isArray(chunk["choices"])) unknown.push(data);
    else {
      head ??= chunk;
      usage = chunk["usage"] ?? usage;
      const choice = listOf(chunk["choices"]).find((one) => isFields(one) && (one["index"] ?? 0) === 0);
      if (!isFields(choice)) continue;
      finish = choice["finish_reason"] ?? finish;
      if (isFields(choice["delta"])) addDelta(choice["delta"], message, calls);
    }
  }
  const called = [...calls].toSorted(([one], [other]) => one - other).map(([, call]) => call);
  if (called.length > 0) message["tool_calls"] = called;
  const whole = { role: "assistant", content: null, ...message };
  const reply =
    head === null
      ? null
      : { id: head["id"], model: head["model"], choices: [{ index: 0, message: whole, finish_reason: finish }], usage };
  // Some servers close the connection after the last chunk without sending `[DONE]`.
  return { reply, isEnded: isEnded || finish !== null, error, unknown };
}

function addDelta(delta: Fields, message: Record<string, unknown>, calls: Map<number, Record<string, unknown>>): void {
  for (const name of texts) {
    const said = delta[name];
    if (typeof said === "string") message[name] = textOr(message[name], "") + said;
  }
  for (const [at, given] of listOf(delta["tool_calls"]).entries()) {
    if (!isFields(given)) continue;
    const index = typeof given["index"] === "number" ? given["index"] : at;
    const call = calls.get(index) ?? {};
    calls.set(index, call);
    for (const [name, value] of Object.entries(given)) {
      if (name === "index") continue;
      call[name] = isFields(value) ? joined(isFields(call[name]) ? call[name] : {}, value) : (value ?? call[name]);
    }
  }
}

/** The name of a call arrives once, its arguments in pieces, so strings are concatenated. */
function joined(before: Fields, more: Fields): Fields {
  const all: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(more))
    all[name] = typeof value === "string" ? textOr(all[name], "") + value : value;
  return all;
}
