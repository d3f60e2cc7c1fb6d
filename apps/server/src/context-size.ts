import type { SessionState, StoredRecord } from "@throughline/core";
import { percentOf, runInSlices } from "@throughline/core/internal";
import type { Context } from "@throughline/history";
import { contextSteps, entryWindowTokens, limitSteps } from "@throughline/history/internal";
import { readHistoryCut } from "@throughline/session/internal";
import { breakDown, createAheadCounter, type EstimateSource, readCalibration } from "@throughline/tokens/internal";
import { createTokenEstimator, emptyCalibration, estimateContext, gaugeOf, lastActual } from "@throughline/tokens";
import type { ContextBreakdown, ModelName } from "@throughline/tokens/internal";
import type { TokenEstimator } from "@throughline/tokens";

/** How full the window is, as `--json` shows it. */
export interface ContextGauge {
  readonly tokens: number;
  readonly source: EstimateSource;
  readonly lowTokens: number;
  readonly highTokens: number;
  readonly windowTokens: number | null;
  readonly percent: number | null;
}

export interface ContextSize {
  readonly gauge: ContextGauge;
  /** Adds up to the gauge's tokens. */
  readonly breakdown: ContextBreakdown;
  /** When the call was made whose count the gauge is built on; null when it is an estimate from end to end. */
  readonly countedAtMs: number | null;
}

export interface ContextSizeOptions {
  /** @default the context's own model */
  readonly model: ModelName | null;
  readonly windowTokens: number | null;
  /** What the session has learned of the model's tokenizer, as its entry keeps it. @default nothing */
  readonly learned?: unknown;
  /** Told when the vocabulary of the model cannot be loaded. @default nobody: the gauge states that it is rough */
  readonly onFallback?: (vocabulary: string) => void;
  /** Keeps the vocabularies that it has loaded. @default one for this measurement */
  readonly estimator?: TokenEstimator;
}

/** What a model is given next, and what the session knows about its size. */
export interface NextContext {
  readonly built: Context;
  /** Null where nobody has named the model's window. */
  readonly windowTokens: number | null;
  /** What the session has learned of the model's tokenizer, as its entry keeps it. */
  readonly learned: unknown;
}

/**
 * The context of a session as the next call gives it, shortened where an earlier call was. It is built in slices.
 *
 * @param records the session's window
 * @param windowTokens the model's window; the session's own without it
 */
export async function nextContext(
  state: SessionState,
  records: readonly StoredRecord[],
  windowTokens?: number,
): Promise<NextContext> {
  const window = windowTokens ?? entryWindowTokens(state.entry["contextTokens"]);
  const whole = await runInSlices(contextSteps(records, { headId: state.head.headId }));
  const cut = readHistoryCut(records, window);
  const kept = state.entry["throughline"] as { readonly calibration?: unknown } | null | undefined;
  return {
    built: cut === null ? whole : await runInSlices(limitSteps(whole, { recorded: cut })),
    windowTokens: window,
    learned: kept?.calibration,
  };
}

/**
 * The size of the context at the next call: the provider's count at the last call that is still valid, and an estimate
 * of the records after it. The count is input, cache reads and writes, and output of one call, never a sum over calls.
 * A count does not hold after a compaction, an edit, or a change of model; then all is estimated.
 */
export async function measureContext(context: Context, options: ContextSizeOptions): Promise<ContextSize> {
  const { messages } = context;
  const model = options.model ?? ownModel(context);
  const { onFallback, estimator = createTokenEstimator(onFallback === undefined ? {} : { onFallback }) } = options;
  const counter = createAheadCounter(await estimator.counterFor(model));
  await runInSlices(counter.countAhead(messages));
  const actual = lastActual(messages, model);
  const calibration = readCalibration(options.learned) ?? emptyCalibration;
  const estimate = estimateContext({ messages }, { counter, calibration, actual });
  const { tokens, source, lowTokens, highTokens, windowTokens } = gaugeOf(estimate, {
    windowTokens: options.windowTokens,
  });
  // A count includes the system prompt and the tools of that call, which are in no log; an estimate knows of none.
  const request = actual === null ? { messages, system: null } : { messages };
  return {
    gauge: { tokens, source, lowTokens, highTokens, windowTokens, percent: percentOf(tokens, windowTokens) },
    breakdown: breakDown(request, { counter, calibration, totalTokens: tokens }),
    countedAtMs: actual === null ? null : (messages[actual.coversMessages - 1]?.tsMs ?? null),
  };
}

/** A model as `--model` names it: `provider/name` or a name. */
export function namedModel(name: string): ModelName {
  const slash = name.indexOf("/");
  return slash === -1
    ? { provider: null, modelId: name }
    : { provider: name.slice(0, slash), modelId: name.slice(slash + 1) };
}

/** The branch's model; of a log that names models without providers, the last one that was heard. */
function ownModel({ model, messages }: Context): ModelName {
  if (model !== null) return model;
  const heard = messages.findLast((message) => message.role === "assistant" && message.model !== null);
  return { provider: null, modelId: heard?.role === "assistant" ? (heard.model ?? "") : "" };
}
