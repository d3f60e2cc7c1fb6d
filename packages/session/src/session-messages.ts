import { runInSlices } from "@throughline/core/internal";
import { applyChanges } from "@throughline/guard/internal";
import { renderSteps } from "@throughline/history/internal";
import type { Gauge } from "@throughline/tokens";
import { createAheadCounter } from "@throughline/tokens/internal";
import { estimatePrompt, measuredSize, prefixOf, promptOf } from "./prompt.ts";
import { restoreHistory } from "./restore-history.ts";
import type { SessionMessages } from "./session.ts";
import type { Emit } from "./session-event.ts";
import { readLearning } from "./session-learning.ts";
import { mappingFor, type SessionLog, targetOf } from "./session-log.ts";
import type { SessionModel, SessionsOptions } from "./session-options.ts";
import type { SharedParts } from "./shared-parts.ts";
import { toolSet, turnSettings } from "./turn-settings.ts";

interface MessagesContext {
  readonly log: SessionLog;
  readonly options: SessionsOptions;
  readonly shared: SharedParts;
  readonly model: SessionModel;
  readonly emit: Emit | null;
  readonly signal: AbortSignal;
}

/** Returns the messages that a call would send now, in the shape of an API. */
export async function readMessages(
  { log, options, shared, model: asked, emit, signal }: MessagesContext,
  api: string,
): Promise<SessionMessages> {
  await log.retarget(targetOf(asked));
  const model = { provider: asked.chat.provider, modelId: asked.modelId };
  const settings = turnSettings(asked, options, {});
  const counter = createAheadCounter(await shared.estimator.counterFor(model));
  const windowTokens = await shared.windowOf(asked, null, signal);
  const learning = readLearning(log.entry);
  const { calibration } = learning;
  await restoreHistory(log, { settings, counter, learning, windowTokens, emit });
  const measure = async (text: string | null): Promise<Omit<SessionMessages, "api">> => {
    const prefix = prefixOf(text, toolSet(options.tools).definitions);
    const prompt = promptOf(log, text, log.facts.keptChanges);
    const actual = measuredSize(log, prompt.messages, prefix, counter);
    // The repair may have added a user message to end the request. The message of the next turn replaces it, so it is
    // not counted.
    const isContinued = prompt.rendering.repairs.some(({ rule }) => rule === "continuation-added");
    const held = { ...prompt, messages: isContinued ? prompt.messages.slice(0, -1) : prompt.messages };
    const estimate = await estimatePrompt(held, prefix.tools, { counter, calibration, actual });
    const gauge = log.gauge(estimate, windowTokens);
    return { system: prompt.system, messages: prompt.messages, repairs: prompt.rendering.repairs, gauge };
  };
  const { system } = settings;
  const made = (gauge: Gauge): string | null =>
    typeof system === "function" ? system({ ref: log.ref, turnId: null, gauge }) : system;
  // The prompt is created once only to be counted, because the gauge in the final prompt must include the prompt
  // itself.
  const sized = async (counted: string | null): Promise<string | null> => made((await measure(counted)).gauge);
  const text = typeof system === "function" ? await sized(await sized(null)) : system;
  const { gauge, ...here } = await measure(text);
  if (api === asked.chat.api) return { api, ...here, gauge };
  const other = await runInSlices(renderSteps(log.history.context(), mappingFor(api), { system: text }));
  const messages = applyChanges(other.messages, log.facts.keptChanges);
  return { api, system: other.system, messages, repairs: other.repairs, gauge };
}
