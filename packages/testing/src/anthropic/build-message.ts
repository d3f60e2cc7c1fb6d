import { countReply } from "../count-tokens.ts";
import { objectsOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { replyParts, replyStop } from "../simulated-reply.ts";
import type { AnswerReply, ReplyPart, ReplyStop } from "../simulated-reply.ts";
import { hashTexts } from "../thinking-seal.ts";
import type { WireContext } from "../wire-adapter.ts";
import { conversationPieces, promptPieces } from "./prompt-pieces.ts";

const stopReasons: Readonly<Record<ReplyStop, string>> = {
  end: "end_turn",
  length: "max_tokens",
  "tool-calls": "tool_use",
  refusal: "refusal",
  "context-window": "model_context_window_exceeded",
};

function isThinking(part: ReplyPart): boolean {
  return part.type === "thinking" || part.type === "redacted-thinking";
}

function buildContent(body: JsonObject, reply: AnswerReply, context: WireContext): readonly JsonObject[] {
  const parts = replyParts(reply);
  const count = parts.filter(isThinking).length;
  const prefix = hashTexts(conversationPieces(objectsOf(body["messages"])).map((piece) => piece.key));
  const replyId = context.nextId("reply");
  return parts.map((part, position) => {
    if (part.type === "text") return { type: "text", text: part.text, citations: null };
    if (part.type === "tool-call")
      return {
        type: "tool_use",
        id: part.id ?? context.nextId("toolu"),
        name: part.name,
        input: part.input,
        caller: { type: "direct" },
      };
    const thinking = part.type === "thinking" ? part.thinking : "";
    const index = parts.slice(0, position).filter(isThinking).length;
    const seal = { reply: replyId, index, count, blocksBefore: position, text: hashTexts([thinking]), prefix };
    const signature = context.seals.sign(seal);
    return part.type === "thinking"
      ? { type: "thinking", thinking, signature }
      : { type: "redacted_thinking", data: signature };
  });
}

function buildUsage(body: JsonObject, reply: AnswerReply, context: WireContext): JsonObject {
  const cached = context.cache.account(promptPieces(body));
  const counted = countReply(reply);
  const written = reply.usage?.cacheWriteTokens ?? cached.cacheWriteTokens;
  return {
    input_tokens: reply.usage?.inputTokens ?? cached.inputTokens,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: reply.usage?.cacheReadTokens ?? cached.cacheReadTokens,
    cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 },
    output_tokens: counted.outputTokens,
    output_tokens_details: { thinking_tokens: counted.thinkingTokens },
    server_tool_use: null,
    service_tier: "standard",
    inference_geo: null,
    speed: null,
  };
}

export function buildMessage(body: JsonObject, reply: AnswerReply, context: WireContext): JsonObject {
  return {
    id: context.nextId("msg"),
    type: "message",
    role: "assistant",
    model: textOf(body["model"]),
    content: buildContent(body, reply, context),
    stop_reason: stopReasons[replyStop(reply)],
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: buildUsage(body, reply, context),
  };
}
