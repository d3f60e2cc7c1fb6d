import { isObject, objectsOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { pieces } from "../simulated-reply.ts";

const pieceLength = 12;

function callDeltas(call: JsonObject, index: number): readonly JsonObject[] {
  const described = isObject(call["function"]) ? call["function"] : {};
  const opening = { index, id: call["id"], type: "function", function: { name: described["name"], arguments: "" } };
  const parts = pieces(textOf(described["arguments"]), pieceLength);
  return [
    { tool_calls: [opening] },
    ...parts.map((part) => ({ tool_calls: [{ index, function: { arguments: part } }] })),
  ];
}

export function chatChunks(completion: JsonObject, body: JsonObject): readonly string[] {
  const choice = objectsOf(completion["choices"])[0] ?? {};
  const message = isObject(choice["message"]) ? choice["message"] : {};
  const options = isObject(body["stream_options"]) ? body["stream_options"] : {};
  const withUsage = options["include_usage"] === true;
  const { id, created, model, service_tier, system_fingerprint } = completion;
  const chunk = (choices: readonly JsonObject[], usage: unknown): string => {
    const base = { id, object: "chat.completion.chunk", created, model, service_tier, system_fingerprint, choices };
    return `data: ${JSON.stringify(withUsage ? { ...base, usage } : base)}\n\n`;
  };
  const step = (delta: JsonObject, finish: unknown = null): string =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason: finish }], null);
  const calls = objectsOf(message["tool_calls"]);
  const opensWithText = typeof message["content"] === "string" || calls.length === 0;
  return [
    step({ role: "assistant", content: opensWithText ? "" : null, refusal: null }),
    ...pieces(textOf(message["reasoning_content"]), pieceLength).map((part) => step({ reasoning_content: part })),
    ...pieces(textOf(message["content"]), pieceLength).map((part) => step({ content: part })),
    ...calls.flatMap(callDeltas).map((delta) => step(delta)),
    step({}, choice["finish_reason"]),
    ...(withUsage ? [chunk([], completion["usage"])] : []),
    "data: [DONE]\n\n",
  ];
}
