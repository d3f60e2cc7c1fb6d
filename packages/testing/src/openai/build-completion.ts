import { countReply } from "../count-tokens.ts";
import { textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { replyParts, replyStop } from "../simulated-reply.ts";
import type { AnswerReply, ReplyStop } from "../simulated-reply.ts";
import type { WireContext } from "../wire-adapter.ts";

const finishReasons: Readonly<Record<ReplyStop, string>> = {
  end: "stop",
  length: "length",
  "tool-calls": "tool_calls",
  refusal: "content_filter",
  "context-window": "length",
};

function buildUsage(reply: AnswerReply, promptTokens: number): JsonObject {
  const { outputTokens, thinkingTokens } = countReply(reply);
  const prompt = reply.usage?.inputTokens ?? promptTokens;
  return {
    prompt_tokens: prompt,
    completion_tokens: outputTokens,
    total_tokens: prompt + outputTokens,
    prompt_tokens_details: { cached_tokens: reply.usage?.cacheReadTokens ?? 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: thinkingTokens, audio_tokens: 0 },
  };
}

function buildReplyMessage(reply: AnswerReply, showReasoning: boolean, context: WireContext): JsonObject {
  const parts = replyParts(reply);
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const thinking = parts.flatMap((part) => (part.type === "thinking" ? [part.thinking] : []));
  const calls = parts.flatMap((part) => {
    if (part.type !== "tool-call") return [];
    const described = { name: part.name, arguments: JSON.stringify(part.input) };
    return [{ id: part.id ?? context.nextId("call"), type: "function", function: described }];
  });
  return {
    role: "assistant",
    content: texts.length === 0 ? null : texts.join(""),
    refusal: null,
    ...(showReasoning && thinking.length > 0 ? { reasoning_content: thinking.join("") } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

/** Builds a completion. It hides thinking like the service does, unless the model has `reasoningContent`. */
export function buildCompletion(
  body: JsonObject,
  reply: AnswerReply,
  promptTokens: number,
  context: WireContext,
): JsonObject {
  const { reasoningContent } = context.model(textOf(body["model"]));
  const message = buildReplyMessage(reply, reasoningContent, context);
  return {
    id: context.nextId("chatcmpl"),
    object: "chat.completion",
    created: Math.floor(context.nowMs() / 1000),
    model: textOf(body["model"]),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReasons[replyStop(reply)] }],
    usage: buildUsage(reply, promptTokens),
    service_tier: "default",
    system_fingerprint: "fp_sim",
  };
}
