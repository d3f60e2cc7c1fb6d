import { createTokenEstimator } from "@throughline/tokens";
import { compactInFlight } from "./compact-in-flight.ts";
import { guardCall } from "./guard-call.ts";
import type { GuardEvent } from "./guard-options.ts";
import { isFields } from "./message-slots.ts";
import { resultLimitsFor } from "./result-limits.ts";

/** What the client's `messages.create` is called with. */
export interface ApiCallRequest {
  readonly model: string;
  readonly max_tokens: number;
  readonly system: string;
  readonly messages: readonly unknown[];
  /** Only there when tools were given. */
  readonly tools?: readonly unknown[];
}

/** Options of `guardApiCall`. */
export interface GuardApiCallOptions<Reply> {
  /** Asks the model, also for the summary; Anthropic's Messages API or one like it. */
  readonly create: (request: ApiCallRequest, signal: AbortSignal | null) => Promise<Reply>;
  readonly model: string;
  readonly system: string;
  /** Changed in place when the call succeeded with less than was given. */
  readonly messages: unknown[];
  /** @default none */
  readonly tools?: readonly unknown[];
  /** Calls after the first. @default 2 */
  readonly maxRetries?: number;
  /** What the results may have a share of. @default 180000 */
  readonly maxTokens?: number;
  /** Gives the text of a summary. @default the texts of the reply's `content` */
  readonly readText?: (reply: Reply) => string;
  /** @default none */
  readonly onEvent?: (event: GuardEvent) => void;
  readonly signal?: AbortSignal;
}

const replyTokens = 8096;

/**
 * The guard of claw0's third lesson, in three stages: the call as it is; tool results over 30 % of the limit cut to
 * their head; the older half summarized. Then CONTEXT_OVERFLOW.
 *
 * Differences: only a real overflow counts as one, a tool result keeps its call, and roles alternate. The summary's own
 * call cannot overflow, and a stage that changes nothing costs no call.
 */
export async function guardApiCall<Reply>(options: GuardApiCallOptions<Reply>): Promise<Reply> {
  const { model, system, messages, create, maxTokens = 180_000 } = options;
  const name = { provider: "anthropic", modelId: model };
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
          model,
          max_tokens: request.maxOutputTokens ?? replyTokens,
          system,
          messages: request.messages,
          ...(request.tools ? { tools: request.tools } : {}),
        },
        signal,
      ),
    compact: compactInFlight({
      content: "blocks",
      windowTokens: maxTokens,
      summarize: async (summary) => {
        const question = [{ role: "user", content: summary.prompt }];
        const request = { model, max_tokens: summary.maxOutputTokens, system: summary.system, messages: question };
        return readText(await create(request, summary.signal));
      },
      ...(options.onEvent ? { onEvent: options.onEvent } : {}),
    }),
    resultLimits: resultLimitsFor({ keep: "head", resultPercent: 30 }, maxTokens),
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
