import { countReply } from "../count-tokens.ts";
import { listOf, objectsOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { replyParts, replyStop } from "../simulated-reply.ts";
import type { AnswerReply, ReplyPart } from "../simulated-reply.ts";
import { hashTexts } from "../thinking-seal.ts";
import type { WireContext } from "../wire-adapter.ts";

interface KnownTool {
  readonly type: string;
  readonly namespace: string | null;
}

function toolsIn(list: unknown, namespace: string | null): readonly (readonly [string, KnownTool])[] {
  return objectsOf(list).flatMap((tool) => {
    const [type, name] = [textOf(tool["type"]), textOf(tool["name"])];
    return type === "namespace" ? toolsIn(tool["tools"], name) : [[name, { type, namespace }] as const];
  });
}

/** A request defines tools in its body and in `additional_tools` input items. */
function toolsOf(body: JsonObject): ReadonlyMap<string, KnownTool> {
  const added = objectsOf(body["input"]).filter((item) => item["type"] === "additional_tools");
  return new Map([body, ...added].flatMap((holder) => toolsIn(holder["tools"], null)));
}

function buildCall(
  { name, input, id }: Extract<ReplyPart, { readonly type: "tool-call" }>,
  tools: ReadonlyMap<string, KnownTool>,
  context: WireContext,
): JsonObject {
  const { type = "function", namespace = null } = tools.get(name) ?? {};
  const call = {
    call_id: id ?? context.nextId("call"),
    name,
    ...(namespace === null ? {} : { namespace }),
  };
  if (type !== "custom")
    return {
      id: context.nextId("fc"),
      type: "function_call",
      status: "completed",
      ...call,
      arguments: JSON.stringify(input),
    };
  // A custom tool takes a text instead of JSON arguments.
  const text = typeof input === "string" ? input : JSON.stringify(input);
  return { id: context.nextId("ctc"), type: "custom_tool_call", status: "completed", ...call, input: text };
}

function buildItem(
  part: ReplyPart,
  encrypt: boolean,
  tools: ReadonlyMap<string, KnownTool>,
  context: WireContext,
): readonly JsonObject[] {
  if (part.type === "redacted-thinking") return [];
  if (part.type === "text") {
    const content = [{ type: "output_text", text: part.text, annotations: [], logprobs: [] }];
    return [{ id: context.nextId("msg"), type: "message", status: "completed", role: "assistant", content }];
  }
  if (part.type === "tool-call") return [buildCall(part, tools, context)];
  const text = hashTexts([part.thinking]);
  const id = context.nextId("rs");
  const seal = { reply: id, index: 0, count: 1, blocksBefore: 0, text, prefix: "" };
  const summary = [{ type: "summary_text", text: part.thinking }];
  return [{ id, type: "reasoning", summary, ...(encrypt ? { encrypted_content: context.seals.sign(seal) } : {}) }];
}

function buildUsage(reply: AnswerReply, promptTokens: number): JsonObject {
  const { outputTokens, thinkingTokens } = countReply(reply);
  const input = reply.usage?.inputTokens ?? promptTokens;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: reply.usage?.cacheReadTokens ?? 0, cache_write_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: thinkingTokens },
    total_tokens: input + outputTokens,
  };
}

export function buildResponse(
  body: JsonObject,
  reply: AnswerReply,
  promptTokens: number,
  context: WireContext,
): JsonObject {
  const encrypt = listOf(body["include"]).includes("reasoning.encrypted_content");
  const tools = toolsOf(body);
  const stop = replyStop(reply);
  const isIncomplete = stop === "length" || stop === "context-window" || stop === "refusal";
  const reason = stop === "refusal" ? "content_filter" : "max_output_tokens";
  return {
    id: context.nextId("resp"),
    object: "response",
    created_at: Math.floor(context.nowMs() / 1000),
    status: isIncomplete ? "incomplete" : "completed",
    error: null,
    incomplete_details: isIncomplete ? { reason } : null,
    instructions: body["instructions"] ?? null,
    max_output_tokens: body["max_output_tokens"] ?? null,
    model: textOf(body["model"]),
    output: replyParts(reply).flatMap((part) => buildItem(part, encrypt, tools, context)),
    parallel_tool_calls: body["parallel_tool_calls"] ?? true,
    previous_response_id: body["previous_response_id"] ?? null,
    reasoning: body["reasoning"] ?? null,
    store: body["store"] ?? true,
    temperature: body["temperature"] ?? 1,
    tool_choice: body["tool_choice"] ?? "auto",
    tools: body["tools"] ?? [],
    top_p: body["top_p"] ?? 1,
    truncation: body["truncation"] ?? "disabled",
    metadata: body["metadata"] ?? {},
    usage: buildUsage(reply, promptTokens),
  };
}
