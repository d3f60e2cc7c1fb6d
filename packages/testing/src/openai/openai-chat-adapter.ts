import { isInteger, objectsOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { checkOpenAiChat } from "../rules/openai-chat.ts";
import { invalidRequest } from "../violation.ts";
import type { Violation } from "../violation.ts";
import type { Judgement, WireAdapter, WireAnswer, WireContext, WireRequest } from "../wire-adapter.ts";
import { chatChunks } from "./chat-chunks.ts";
import { buildCompletion } from "./build-completion.ts";
import { authenticateOpenAi, openAiError, openAiFailure, usualOpenAiFailure } from "./openai-failure.ts";
import { messageTokens, toolTokens } from "./prompt-tokens.ts";

const limitCode = "context_length_exceeded";

function overflow(body: JsonObject, promptTokens: number, windowTokens: number): Violation | null {
  const window = `This model's maximum context length is ${windowTokens} tokens.`;
  if (promptTokens > windowTokens) {
    const functions = toolTokens(body);
    const detail = functions > 0 ? ` (${promptTokens - functions} in the messages, ${functions} in the functions)` : "";
    const advice = functions > 0 ? "messages or functions" : "messages";
    return invalidRequest(
      `${window} However, your messages resulted in ${promptTokens} tokens${detail}. Please reduce the length of the ${advice}.`,
      "messages",
      limitCode,
    );
  }
  const asked = [body["max_completion_tokens"], body["max_tokens"]].find(isInteger) ?? 0;
  if (promptTokens + asked <= windowTokens) return null;
  return invalidRequest(
    `${window} However, you requested ${promptTokens + asked} tokens (${promptTokens} in the messages, ${asked} in the completion). Please reduce the length of the messages or completion.`,
    "messages",
    limitCode,
  );
}

function judge({ body }: WireRequest, context: WireContext): Judgement {
  const model = context.model(textOf(body["model"]));
  const violation = checkOpenAiChat({ body, model });
  if (violation) return { violation, kind: "invalid", promptTokens: 0 };
  const messages = objectsOf(body["messages"]).reduce((sum, message) => sum + messageTokens(message), 0);
  const promptTokens = messages + toolTokens(body);
  return { violation: overflow(body, promptTokens, model.windowTokens), kind: "overflow", promptTokens };
}

export function createOpenAiChatAdapter(context: WireContext): WireAdapter {
  return {
    api: "openai-chat",
    streamType: "text/event-stream; charset=utf-8",
    streamFailureStatus: 503,
    authenticate: authenticateOpenAi,
    judge: (request) => judge(request, context),
    streams: (body) => body["stream"] === true,
    answer({ body }, reply, promptTokens): WireAnswer {
      const completion = buildCompletion(body, reply, promptTokens, context);
      return { whole: JSON.stringify(completion), events: chatChunks(completion, body) };
    },
    count: (promptTokens) => ({ prompt_tokens: promptTokens }),
    failure: (violation) => openAiFailure(violation, context.nextId("req")),
    failureEvent: (violation) => `data: ${JSON.stringify({ error: openAiError(violation) })}\n\n`,
    refusalEvents: () => null,
    usualFailure: usualOpenAiFailure,
  };
}
