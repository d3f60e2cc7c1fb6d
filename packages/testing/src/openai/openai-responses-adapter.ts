import { isObject, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { checkOpenAiResponses, itemsOf } from "../rules/openai-responses.ts";
import { invalidRequest } from "../violation.ts";
import type { Violation } from "../violation.ts";
import { accepted } from "../wire-adapter.ts";
import type { Judgement, WireAdapter, WireAnswer, WireContext, WireRequest } from "../wire-adapter.ts";
import { buildResponse } from "./build-response.ts";
import { authenticateOpenAi, openAiError, openAiFailure, usualOpenAiFailure } from "./openai-failure.ts";
import { itemTokens, toolTokens } from "./prompt-tokens.ts";
import { failedResponseEvents, responseEvents } from "./response-events.ts";
import { tokensOfText } from "../count-tokens.ts";

const overflow: Violation = invalidRequest(
  "Your input exceeds the context window of this model. Please adjust your input and try again.",
  "input",
  "context_length_exceeded",
);

function judge({ body, countOnly }: WireRequest, context: WireContext): Judgement {
  const model = context.model(textOf(body["model"]));
  const violation = checkOpenAiResponses({ body, model, ledger: context.ledger, seals: context.seals });
  if (violation) return { violation, kind: "invalid", promptTokens: 0 };
  const items = itemsOf({ body, ledger: context.ledger }).reduce((sum, item) => sum + itemTokens(item), 0);
  const promptTokens = items + toolTokens(body) + tokensOfText(textOf(body["instructions"]));
  if (countOnly || promptTokens <= model.windowTokens) return accepted(promptTokens);
  // With `auto` the service drops items from the front instead of rejecting the request.
  if (body["truncation"] === "auto") return accepted(model.windowTokens);
  return { violation: overflow, kind: "overflow", promptTokens };
}

function answer({ body }: WireRequest, response: JsonObject, context: WireContext): WireAnswer {
  const output = Array.isArray(response["output"]) ? response["output"].filter(isObject) : [];
  context.ledger.issued(output);
  if (body["store"] !== false)
    context.ledger.store(textOf(response["id"]), {
      items: [...itemsOf({ body, ledger: context.ledger }), ...output],
    });
  return { whole: JSON.stringify(response), events: responseEvents(response) };
}

export function createOpenAiResponsesAdapter(context: WireContext): WireAdapter {
  return {
    api: "openai-responses",
    streamType: "text/event-stream; charset=utf-8",
    streamFailureStatus: 503,
    authenticate: authenticateOpenAi,
    judge: (request) => judge(request, context),
    streams: (body) => body["stream"] === true,
    answer: (request, reply, promptTokens) =>
      answer(request, buildResponse(request.body, reply, promptTokens, context), context),
    count: (promptTokens) => ({ object: "response.input_tokens", input_tokens: promptTokens }),
    failure: (violation) => openAiFailure(violation, context.nextId("req")),
    failureEvent: (violation) =>
      `event: error\ndata: ${JSON.stringify({ type: "error", sequence_number: 0, ...openAiError(violation) })}\n\n`,
    refusalEvents({ body }, { kind, violation, promptTokens }): readonly string[] | null {
      if (kind !== "overflow" || violation === null) return null;
      const empty = buildResponse(body, { kind: "answer", content: "" }, promptTokens, context);
      return failedResponseEvents(empty, violation);
    },
    usualFailure: usualOpenAiFailure,
  };
}
