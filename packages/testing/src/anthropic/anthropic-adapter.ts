import { sumTokens } from "../count-tokens.ts";
import { fitReply } from "../fit-reply.ts";
import { isInteger, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { checkAnthropic } from "../rules/anthropic.ts";
import { invalidRequest } from "../violation.ts";
import type { Violation } from "../violation.ts";
import { accepted } from "../wire-adapter.ts";
import type { Judgement, WireAdapter, WireAnswer, WireContext, WireRequest, WireResponse } from "../wire-adapter.ts";
import { buildMessage } from "./build-message.ts";
import { messageEvents } from "./message-events.ts";
import { promptPieces } from "./prompt-pieces.ts";

const usual: Readonly<Record<number, readonly [type: string, message: string]>> = {
  400: ["invalid_request_error", "messages: Input should be a valid list"],
  401: ["authentication_error", "invalid x-api-key"],
  403: ["permission_error", "Your API key does not have permission to use the specified resource."],
  404: ["not_found_error", "Not found"],
  413: ["request_too_large", "Request exceeds the maximum size"],
  429: ["rate_limit_error", "Number of request tokens has exceeded your per-minute rate limit"],
  500: ["api_error", "Internal server error"],
  529: ["overloaded_error", "Overloaded"],
};

function overflow(body: JsonObject, promptTokens: number, context: WireContext): Violation | null {
  const { windowTokens, outputOverflow } = context.model(textOf(body["model"]));
  if (promptTokens > windowTokens)
    return invalidRequest(`prompt is too long: ${promptTokens} tokens > ${windowTokens} maximum`);
  const asked = isInteger(body["max_tokens"]) ? body["max_tokens"] : 0;
  if (outputOverflow === "stop" || promptTokens + asked <= windowTokens) return null;
  return invalidRequest(
    `input length and \`max_tokens\` exceed context limit: ${promptTokens} + ${asked} > ${windowTokens}, decrease input length or \`max_tokens\` and try again`,
  );
}

function judge({ body, headers, countOnly }: WireRequest, context: WireContext): Judgement {
  if (!headers["anthropic-version"])
    return { violation: invalidRequest("anthropic-version: header is required"), kind: "invalid", promptTokens: 0 };
  const betas = textOf(headers["anthropic-beta"])
    .split(",")
    .map((beta) => beta.trim());
  const model = context.model(textOf(body["model"]));
  const violation = checkAnthropic({ body, betas, model, seals: context.seals, countOnly });
  if (violation) return { violation, kind: "invalid", promptTokens: 0 };
  const promptTokens = sumTokens(promptPieces(body));
  if (countOnly) return accepted(promptTokens);
  return { violation: overflow(body, promptTokens, context), kind: "overflow", promptTokens };
}

function envelope({ type, message }: Violation, requestId: string): string {
  return JSON.stringify({ type: "error", error: { type, message }, request_id: requestId });
}

export function createAnthropicAdapter(context: WireContext): WireAdapter {
  return {
    api: "anthropic",
    streamType: "text/event-stream; charset=utf-8",
    streamFailureStatus: 529,
    authenticate(headers, apiKey): Violation | null {
      const given = textOf(headers["x-api-key"]) || textOf(headers.authorization).replace(/^Bearer /, "");
      const refuse = (message: string): Violation => ({ status: 401, type: "authentication_error", message });
      if (given === "") return refuse("x-api-key header is required");
      return apiKey === undefined || given === apiKey ? null : refuse("invalid x-api-key");
    },
    judge: (request) => judge(request, context),
    streams: (body) => body["stream"] === true,
    answer({ body }, reply, promptTokens): WireAnswer {
      const { windowTokens } = context.model(textOf(body["model"]));
      const message = buildMessage(body, fitReply(reply, windowTokens - promptTokens), context);
      return { whole: JSON.stringify(message), events: messageEvents(message) };
    },
    count: (promptTokens) => ({ input_tokens: promptTokens }),
    failure(violation): WireResponse {
      const requestId = context.nextId("req");
      return { status: violation.status, headers: { "request-id": requestId }, body: envelope(violation, requestId) };
    },
    failureEvent: (violation) => `event: error\ndata: ${envelope(violation, context.nextId("req"))}\n\n`,
    refusalEvents: () => null,
    usualFailure(status): Violation {
      const [type, message] = usual[status] ?? ["api_error", `Status ${status}`];
      return { status, type, message };
    },
  };
}
