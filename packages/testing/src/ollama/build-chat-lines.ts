import { countReply } from "../count-tokens.ts";
import { textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { pieces, replyParts, replyStop } from "../simulated-reply.ts";
import type { AnswerReply, ReplyPart } from "../simulated-reply.ts";
import type { WireContext } from "../wire-adapter.ts";

const pieceLength = 8;
const nanosecondsPerToken = 1_000_000;

function toolCalls(parts: readonly ReplyPart[], context: WireContext): readonly JsonObject[] {
  return parts
    .filter((part) => part.type === "tool-call")
    .map(({ name, input, id }, index) => ({
      id: id ?? context.nextId("call"),
      function: { index, name, arguments: input },
    }));
}

/**
 * Builds the counts of the last line. The server evaluates only the part of the prompt that it kept, so `promptTokens`
 * excludes dropped messages.
 */
function closing(reply: AnswerReply, promptTokens: number): JsonObject {
  const prompt = reply.usage?.inputTokens ?? promptTokens;
  const { outputTokens } = countReply(reply);
  const stop = replyStop(reply);
  return {
    done: true,
    done_reason: stop === "length" || stop === "context-window" ? "length" : "stop",
    total_duration: (prompt + outputTokens) * nanosecondsPerToken,
    load_duration: nanosecondsPerToken,
    prompt_eval_count: prompt,
    prompt_eval_duration: prompt * nanosecondsPerToken,
    eval_count: outputTokens,
    eval_duration: outputTokens * nanosecondsPerToken,
  };
}

export function buildChatLines(
  body: JsonObject,
  reply: AnswerReply,
  promptTokens: number,
  context: WireContext,
): { readonly whole: JsonObject; readonly lines: readonly JsonObject[] } {
  const parts = replyParts(reply);
  const calls = toolCalls(parts, context);
  const join = (texts: readonly string[]): string => texts.join("");
  const content = join(parts.flatMap((part) => (part.type === "text" ? [part.text] : [])));
  const thinking = join(parts.flatMap((part) => (part.type === "thinking" ? [part.thinking] : [])));
  const base = { model: textOf(body["model"]), created_at: new Date(context.nowMs()).toISOString() };
  const line = (message: JsonObject): JsonObject => ({
    ...base,
    message: { role: "assistant", content: "", ...message },
    done: false,
  });
  const end = closing(reply, promptTokens);
  const optional = { ...(thinking ? { thinking } : {}), ...(calls.length > 0 ? { tool_calls: calls } : {}) };
  return {
    whole: { ...base, message: { role: "assistant", content, ...optional }, ...end },
    lines: [
      ...pieces(thinking, pieceLength).map((piece) => line({ thinking: piece })),
      ...pieces(content, pieceLength).map((piece) => line({ content: piece })),
      ...calls.map((call) => line({ tool_calls: [call] })),
      { ...base, message: { role: "assistant", content: "" }, ...end },
    ],
  };
}
