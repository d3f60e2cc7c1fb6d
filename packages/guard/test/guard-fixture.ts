import { createTokenEstimator } from "@throughline/tokens";
import type { TokenCounter } from "@throughline/tokens/internal";
import { createProviderSimulator } from "@throughline/testing";
import type { ProviderSimulator, ProviderSimulatorOptions } from "@throughline/testing";
import { compactInFlight } from "../src/compact-in-flight.ts";
import { guardCall } from "@throughline/guard";
import type { GuardedRequest, GuardEvent } from "../src/guard-options.ts";
import type { GuardOptions, GuardOutcome } from "@throughline/guard";
import { wirings, type WiringName } from "./models.ts";

const estimator = createTokenEstimator();

/** What a test may set of a guarded call. */
type FixtureOptions = Partial<Omit<GuardOptions<unknown>, "request" | "model">> & {
  readonly messages: readonly unknown[];
  readonly maxOutputTokens?: number | null;
};

/** A simulated provider, its SDK, and the guard before it. */
export interface Fixture {
  readonly simulator: ProviderSimulator;
  readonly events: GuardEvent[];
  readonly sent: GuardedRequest[];
  readonly counter: TokenCounter;
  guard(options: FixtureOptions): Promise<GuardOutcome<unknown>>;
}

/** Opens a simulator whose models all have the window, and a client to it. */
export async function openFixture(
  name: WiringName,
  streams: boolean,
  windowTokens: number,
  options: ProviderSimulatorOptions = {},
): Promise<Fixture> {
  const simulator = createProviderSimulator({
    models: { "*": { windowTokens } },
    ollamaContextTokens: windowTokens,
    fallback: () => "Fine.",
    ...options,
  });
  await simulator.start();
  const model = wirings[name](simulator.url, streams);
  const counter = await estimator.counterFor(model);
  const events: GuardEvent[] = [];
  const sent: GuardedRequest[] = [];
  return {
    simulator,
    events,
    sent,
    counter,
    async guard({ messages, maxOutputTokens = 256, ...rest }) {
      return guardCall<unknown>({
        model,
        counter,
        request: { messages, maxOutputTokens },
        call: async (request, context) => {
          sent.push(request);
          return model.call(request, context);
        },
        compact: compactInFlight({ summarize: async () => "They looked at files." }),
        onEvent: (event) => void events.push(event),
        ...rest,
      });
    },
  };
}

/** The names of the events' stages, for comparison. */
export function stages(events: readonly GuardEvent[]): readonly string[] {
  return events.flatMap((event) => (event.name === "guard.shrunk" ? [event.remedy] : []));
}
