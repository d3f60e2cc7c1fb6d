import { isObject, objectsOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { pieces } from "../simulated-reply.ts";

const pieceLength = 12;

function event(data: JsonObject): string {
  return `event: ${textOf(data["type"])}\ndata: ${JSON.stringify(data)}\n\n`;
}

function emptied(block: JsonObject): JsonObject {
  if (block["type"] === "text") return { ...block, text: "" };
  if (block["type"] === "thinking") return { ...block, thinking: "", signature: "" };
  return block["type"] === "tool_use" ? { ...block, input: {} } : block;
}

function deltas(block: JsonObject): readonly JsonObject[] {
  if (block["type"] === "text")
    return pieces(textOf(block["text"]), pieceLength).map((text) => ({ type: "text_delta", text }));
  if (block["type"] === "thinking") {
    const thinking = pieces(textOf(block["thinking"]), pieceLength);
    return [
      ...thinking.map((part) => ({ type: "thinking_delta", thinking: part })),
      { type: "signature_delta", signature: block["signature"] },
    ];
  }
  if (block["type"] !== "tool_use") return [];
  // The service starts with an empty piece. For input without fields it sends only that piece.
  const input = JSON.stringify(block["input"]);
  const parts = input === "{}" ? [] : pieces(input, pieceLength);
  return ["", ...parts].map((part) => ({ type: "input_json_delta", partial_json: part }));
}

export function messageEvents(message: JsonObject): readonly string[] {
  const usage = isObject(message["usage"]) ? message["usage"] : {};
  const start = { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } };
  const blocks = objectsOf(message["content"]).flatMap((block, index) => [
    event({ type: "content_block_start", index, content_block: emptied(block) }),
    ...deltas(block).map((delta) => event({ type: "content_block_delta", index, delta })),
    event({ type: "content_block_stop", index }),
  ]);
  const { cache_creation_input_tokens, cache_read_input_tokens, input_tokens, output_tokens } = usage;
  return [
    event({ type: "message_start", message: start }),
    event({ type: "ping" }),
    ...blocks,
    event({
      type: "message_delta",
      delta: {
        stop_reason: message["stop_reason"],
        stop_sequence: message["stop_sequence"],
        stop_details: null,
        container: null,
      },
      usage: {
        input_tokens,
        cache_creation_input_tokens,
        cache_read_input_tokens,
        output_tokens,
        output_tokens_details: usage["output_tokens_details"],
        server_tool_use: null,
      },
    }),
    event({ type: "message_stop" }),
  ];
}
