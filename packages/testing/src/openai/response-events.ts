import { objectsOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { pieces } from "../simulated-reply.ts";
import type { Violation } from "../violation.ts";

const pieceLength = 12;

/** Frames the events and adds the sequence numbers that the API requires. */
function frame(events: readonly JsonObject[]): readonly string[] {
  return events.map((event, index) => {
    const { type, ...rest } = event;
    return `event: ${textOf(type)}\ndata: ${JSON.stringify({ type, sequence_number: index, ...rest })}\n\n`;
  });
}

function growing(name: string, field: string, text: string, place: JsonObject): readonly JsonObject[] {
  return [
    ...pieces(text, pieceLength).map((delta) => ({ type: `${name}.delta`, ...place, delta })),
    { type: `${name}.done`, ...place, [field]: text },
  ];
}

function reasoningEvents(item: JsonObject, place: JsonObject): readonly JsonObject[] {
  const name = "response.reasoning_summary";
  return objectsOf(item["summary"]).flatMap((part, index) => {
    const at = { ...place, summary_index: index };
    return [
      { type: `${name}_part.added`, ...at, part: { ...part, text: "" } },
      ...growing(`${name}_text`, "text", textOf(part["text"]), at),
      { type: `${name}_part.done`, ...at, part },
    ];
  });
}

function messageEvents(item: JsonObject, place: JsonObject): readonly JsonObject[] {
  return objectsOf(item["content"]).flatMap((part, index) => {
    const at = { ...place, content_index: index };
    return [
      { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
      ...growing("response.output_text", "text", textOf(part["text"]), { ...at, logprobs: [] }),
      { type: "response.content_part.done", ...at, part },
    ];
  });
}

function itemEvents(item: JsonObject, index: number): readonly JsonObject[] {
  const place = { item_id: item["id"], output_index: index };
  const type = textOf(item["type"]);
  const started = {
    ...item,
    ...(type === "reasoning" ? { summary: [] } : { status: "in_progress" }),
    ...(type === "message" ? { content: [] } : {}),
    ...(type === "function_call" ? { arguments: "" } : {}),
    ...(type === "custom_tool_call" ? { input: "" } : {}),
  };
  const inner =
    type === "reasoning"
      ? reasoningEvents(item, place)
      : type === "message"
        ? messageEvents(item, place)
        : type === "custom_tool_call"
          ? growing("response.custom_tool_call_input", "input", textOf(item["input"]), place)
          : growing("response.function_call_arguments", "arguments", textOf(item["arguments"]), place);
  return [
    { type: "response.output_item.added", output_index: index, item: started },
    ...inner,
    { type: "response.output_item.done", output_index: index, item },
  ];
}

function begun(response: JsonObject): JsonObject {
  return { ...response, status: "in_progress", output: [], usage: null, incomplete_details: null };
}

export function responseEvents(response: JsonObject): readonly string[] {
  return frame([
    { type: "response.created", response: begun(response) },
    { type: "response.in_progress", response: begun(response) },
    ...objectsOf(response["output"]).flatMap(itemEvents),
    { type: response["status"] === "incomplete" ? "response.incomplete" : "response.completed", response },
  ]);
}

/** Builds the events of a response that failed after its stream had started with status 200. */
export function failedResponseEvents(response: JsonObject, violation: Violation): readonly string[] {
  const { code = null, message } = violation;
  const failed = { ...response, status: "failed", error: { code, message }, output: [], usage: null };
  return frame([
    { type: "response.created", response: begun(response) },
    { type: "response.in_progress", response: begun(response) },
    { type: "response.failed", response: failed },
  ]);
}
