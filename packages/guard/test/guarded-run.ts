import { createTokenEstimator } from "@throughline/tokens";
import type { ModelName, TokenCounter } from "@throughline/tokens/internal";
import { compactInFlight } from "../src/compact-in-flight.ts";
import { guardCall } from "@throughline/guard";
import type { GuardedRequest, GuardEvent } from "../src/guard-options.ts";
import type { GuardOptions, GuardOutcome } from "@throughline/guard";
import { toolTurn } from "./models.ts";

export const model: ModelName = { provider: "anthropic", modelId: "claude-opus-4-5" };
export const counter: TokenCounter = await createTokenEstimator().counterFor(model);
export const fine: object = { content: [{ type: "text", text: "Fine." }], stop_reason: "end_turn" };
export const overflow = (): Error => new Error("prompt is too long: 9000 tokens > 8000 maximum");

/** So many calls of a tool with the same result, and a question. */
export const turns = (count: number, result: string): object[] => [
  ...Array.from({ length: count }, (_, number) => toolTurn("anthropic", number, result)).flat(),
  { role: "user", content: "And now?" },
];

/** A guarded call and what is seen of it. */
export interface Run {
  readonly sent: GuardedRequest[];
  readonly events: GuardEvent[];
  readonly result: Promise<GuardOutcome<unknown>>;
}

/** A guarded call of a model that says that it is fine, unless told otherwise. */
export function run(options: Partial<GuardOptions<unknown>> & Pick<GuardOptions<unknown>, "request">): Run {
  const sent: GuardedRequest[] = [];
  const events: GuardEvent[] = [];
  const { call = async () => fine, ...rest } = options;
  const result = guardCall<unknown>({
    model,
    counter,
    compact: compactInFlight({ summarize: async () => "Short." }),
    onEvent: (event) => void events.push(event),
    call: async (request, context) => {
      sent.push(request);
      return call(request, context);
    },
    ...rest,
  });
  return { sent, events, result };
}
