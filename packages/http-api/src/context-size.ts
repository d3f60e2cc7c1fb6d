import type { SessionState, StoredRecord } from "@throughline/core";
import { percentOf, runInSlices } from "@throughline/core/internal";
import type { Context } from "@throughline/history";
import { contextSteps, entryWindowTokens, limitSteps } from "@throughline/history/internal";
import { readHistoryCut } from "@throughline/session/internal";
import { breakDown, createAheadCounter, readCalibration } from "@throughline/tokens/internal";
import { createTokenEstimator, emptyCalibration, estimateContext, gaugeOf, lastActual } from "@throughline/tokens";
import type { ContextBreakdown, ModelName } from "@throughline/tokens/internal";
import type { Gauge, TokenEstimator } from "@throughline/tokens";

/** Has a `percent` that is rounded to one decimal. */
export type ContextGauge = Pick<Gauge, "tokens" | "source" | "lowTokens" | "highTokens" | "windowTokens" | "percent">;

export interface ContextSize {
  readonly gauge: ContextGauge;
  /** Adds up to `gauge.tokens`, so that a client can show the parts as shares of the whole. */
  readonly breakdown: ContextBreakdown;
  /** States the time of the call whose token count the gauge starts from. Null means that every token is estimated. */
  readonly countedAtMs: number | null;
}

export interface ContextSizeOptions {
  /** @default the context's own model */
  readonly model: ModelName | null;
  readonly windowTokens: number | null;
  /** Holds the calibration of the model's tokenizer from the session entry. @default nothing */
  readonly learned?: unknown;
  /** Is called when the vocabulary of the model cannot be loaded. @default none: the gauge states that it is rough */
  readonly onFallback?: (vocabulary: string) => void;
  /**
   * Caches loaded vocabularies, so callers with several measurements should share one. @default one for this
   * measurement
   */
  readonly estimator?: TokenEstimator;
}

export interface NextContext {
  readonly built: Context;
  /** Is null when neither the caller nor the session entry states the model's window. */
  readonly windowTokens: number | null;
  readonly learned: unknown;
}

/**
 * Builds the context of the next call, shortened in the same way as an earlier call if that call was shortened. The
 * work runs in slices, so that it does not block the event loop.
 *
 * @param records the session's window
 * @param windowTokens the model's window in tokens; defaults to the window of the session entry
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
 * Measures the context of the next call from the provider's last valid count plus an estimate of the later records.
 * The count is input, cache reads, cache writes and output of one call, never a sum over calls. A compaction, an edit
 * or a change of model invalidates the count; then every token is estimated.
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
  // A provider's count includes the system prompt and the tools of that call, which the log does not store. An estimate
  // must leave them out.
  const request = actual === null ? { messages, system: null } : { messages };
  return {
    gauge: { tokens, source, lowTokens, highTokens, windowTokens, percent: percentOf(tokens, windowTokens) },
    breakdown: breakDown(request, { counter, calibration, totalTokens: tokens }),
    countedAtMs: actual === null ? null : (messages[actual.coversMessages - 1]?.tsMs ?? null),
  };
}

export function namedModel(name: string): ModelName {
  const slash = name.indexOf("/");
  return slash === -1
    ? { provider: null, modelId: name }
    : { provider: name.slice(0, slash), modelId: name.slice(slash + 1) };
}

/** Falls back to the model of the newest reply, because some imported logs name models without providers. */
function ownModel({ model, messages }: Context): ModelName {
  if (model !== null) return model;
  const heard = messages.findLast((message) => message.role === "assistant" && message.model !== null);
  return { provider: null, modelId: heard?.role === "assistant" ? (heard.model ?? "") : "" };
}
