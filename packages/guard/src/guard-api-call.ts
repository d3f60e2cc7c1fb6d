import { assertKnownOptions, optionKinds, type OptionTable, isFields } from "@throughline/core/internal";
import { createTokenEstimator } from "@throughline/tokens";
import { compactInFlight } from "./compact-in-flight.ts";
import { guardCall } from "./guard-call.ts";
import type { GuardEvent } from "./guard-options.ts";
import { resultLimitsFor } from "./result-limits.ts";

/** Holds the arguments that the client's `messages.create` receives. */
export interface ApiCallRequest {
  /** Holds the provider's id of the model. */
  readonly model: string;
  /** Limits the tokens that the model may write. */
  readonly max_tokens: number;
  /** Holds the system prompt. */
  readonly system: string;
  /** Holds the messages, in the shape of the Messages API. */
  readonly messages: readonly unknown[];
  /** Holds the tools; absent when the caller passed none. */
  readonly tools?: readonly unknown[];
}

/** Sets the request, the client function and the limits of `guardApiCall`. */
export interface GuardApiCallOptions<Reply> {
  /** Asks the model, for the answer and for the summary. The shape is Anthropic's Messages API or a compatible one. */
  readonly create: (request: ApiCallRequest, signal: AbortSignal | null) => Promise<Reply>;
  /** Holds the provider's id of the model. */
  readonly modelId: string;
  /** Holds the system prompt. */
  readonly system: string;
  /** Holds the messages. The list is changed in place when the call succeeded with a smaller request. */
  readonly messages: unknown[];
  /** Holds the tools, in the shape of the Messages API. @default none */
  readonly tools?: readonly unknown[] | undefined;
  /** Limits the calls after the first one. @default 2 */
  readonly maxRetries?: number | undefined;
  /**
   * Sets the window, in tokens. The summary is asked for inside this window, and tool results are limited to a share of
   * it.
   * @default 180000
   */
  readonly windowTokens?: number | undefined;
  /** Returns the text of a summary reply. @default the texts of the reply's `content` */
  readonly readText?: ((reply: Reply) => string) | undefined;
  /** Receives the events of the guard. @default none */
  readonly onEvent?: ((event: GuardEvent) => void) | undefined;
  /** Ends the call, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

const replyTokens = 8096;

const { callback, filledText, integer, list, number, required, signal: signalKind, text } = optionKinds;

const apiCallTable: OptionTable<GuardApiCallOptions<never>> = {
  create: required(callback),
  modelId: required(filledText),
  system: required(text),
  messages: required(list),
  tools: list,
  maxRetries: integer({ min: 0 }),
  windowTokens: number({ min: 1 }),
  readText: callback,
  onEvent: callback,
  signal: signalKind,
};

/**
 * Guards a call in three stages, as the third lesson of claw0 does. The call goes out unchanged first. Then tool
 * results over 30 % of the limit are cut to their head. Then the older half is summarized. The function throws
 * CONTEXT_OVERFLOW when the request still does not fit.
 *
 * It differs from the lesson in these points: only a real overflow counts as one, a tool result keeps its call, and
 * roles alternate. The summary's own call cannot overflow, and a stage that changes nothing costs no call.
 *
 * @throws {ThroughlineError} INPUT_INVALID, CONTEXT_OVERFLOW, and what `create` throws
 */
export async function guardApiCall<Reply>(options: GuardApiCallOptions<Reply>): Promise<Reply> {
  assertKnownOptions<GuardApiCallOptions<Reply>>("guardApiCall", options, apiCallTable);
  const { modelId, system, messages, create, windowTokens = 180_000 } = options;
  const name = { provider: "anthropic", modelId };
  const readText = options.readText ?? textOfReply;
  const outcome = await guardCall<Reply>({
    model: name,
    counter: await createTokenEstimator().counterFor(name, { method: "chars4" }),
    request: {
      messages: [...messages],
      system,
      maxOutputTokens: replyTokens,
      ...(options.tools ? { tools: options.tools } : {}),
    },
    call: async (request, { signal }) =>
      create(
        {
          model: modelId,
          max_tokens: request.maxOutputTokens ?? replyTokens,
          system,
          messages: request.messages,
          ...(request.tools ? { tools: request.tools } : {}),
        },
        signal,
      ),
    compact: compactInFlight({
      content: "blocks",
      windowTokens,
      summarize: async (summary) => {
        const question = [{ role: "user", content: summary.prompt }];
        const request = {
          model: modelId,
          max_tokens: summary.maxOutputTokens,
          system: summary.system,
          messages: question,
        };
        return readText(await create(request, summary.signal));
      },
      ...(options.onEvent ? { onEvent: options.onEvent } : {}),
    }),
    resultLimits: resultLimitsFor({ keep: "head", resultPercent: 30 }, windowTokens),
    maxRetries: options.maxRetries ?? 2,
    ...(options.onEvent ? { onEvent: options.onEvent } : {}),
    ...(options.signal ? { signal: options.signal } : {}),
  });
  const isChanged = outcome.changes.some(({ what }) => what !== "output-budget");
  if (isChanged) messages.splice(0, messages.length, ...outcome.request.messages);
  return outcome.reply as Reply;
}

function textOfReply(reply: unknown): string {
  const content = isFields(reply) && Array.isArray(reply["content"]) ? reply["content"].filter(isFields) : [];
  return content
    .map(({ text }) => text)
    .filter((text) => typeof text === "string")
    .join("");
}
