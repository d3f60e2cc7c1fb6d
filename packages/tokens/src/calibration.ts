import { isFields, type Fields } from "@throughline/core/internal";
import { canonicalModelId } from "./model-name.ts";
import {
  messageOverheadTokens,
  overheadSpread,
  uncalibratedBand,
  uncalibratedHigh,
  type TokenCount,
  type TokenCounter,
} from "./token-counter.ts";

/** Holds what was measured about each model's tokenizer. It is plain JSON that the caller stores. */
export interface Calibration {
  readonly v: 1;
  /** Holds observed ratios by model and counter version: real tokens per counted token, the newest last, at most 64. */
  readonly ratios: Readonly<Record<string, readonly number[]>>;
  /**
   * Holds the observed overhead of one message in tokens, the newest last, at most 32. The field is absent until a
   * small step was observed.
   */
  readonly overheads?: Readonly<Record<string, readonly number[]>>;
}

/** Holds no measurements, so estimates use the prior of the model's profile alone. */
export const emptyCalibration: Calibration = { v: 1, ratios: {} };

/** Pairs a count with the size that the provider measured for the same content. */
export interface Observation {
  /** Holds the counter that made the count. */
  readonly counter: TokenCounter;
  /** Holds the count that the measurement is compared with. */
  readonly counted: TokenCount;
  /**
   * States the measured tokens. For new messages this is the prompt of the call that first held them, minus the
   * occupancy before that call.
   */
  readonly observedTokens: number;
}

/** Holds the factor to multiply a count with, and the band in which the true value may lie. */
export interface CalibratedFactor {
  /** Holds the factor, in real tokens per counted token. */
  readonly factor: number;
  /** Holds the lower end of the band. */
  readonly low: number;
  /** Holds the upper end of the band. */
  readonly high: number;
  /** Counts the observations behind the factor. At 0 the factor is the prior alone. */
  readonly observations: number;
  /** Holds the tokens that a message costs beside its text, with their band. */
  readonly overhead: {
    /** Counts the tokens of a message beside its text. */
    readonly tokens: number;
    /** Holds the lower end of the band in tokens. */
    readonly low: number;
    /** Holds the upper end of the band in tokens. */
    readonly high: number;
  };
}

/** Below this size the overhead of the messages dominates, so the step reveals nothing about the vocabulary. */
const smallestTokens = 300;
/** The prior counts as this number of observations, so that the first few observations do not decide. */
const priorWeight = 8;
/** Older ratios are dropped, because providers change tokenizers under the same model name. */
const mostRatios = 64;
const mostOverheads = 32;
const mostModels = 64;
/** A ratio further from the prior is not a tokenizer difference: some other part of the prompt changed. */
const mostDeviation = 2;
/** A remainder outside these limits is not overhead: other content came with the message. */
const leastOverhead = -30;
const mostOverhead = 90;

/**
 * Adds an observation and returns the new calibration. A large step measures the error of the tokenizer if both the
 * counted and the observed size are large. If the count is small and the observed size large, the system prompt or the
 * tools changed, and the observation is ignored. A small step measures what a message costs beside its text. Steps that
 * are mostly images are ignored, because their tokens do not follow from text.
 */
export function observe(calibration: Calibration, { counter, counted, observedTokens }: Observation): Calibration {
  const { bareTokens, fixedTokens, messages } = counted;
  const known = calibratedFactor(calibration, counter);
  if (bareTokens * counter.profile.factor < smallestTokens) {
    const overhead = (observedTokens - fixedTokens - bareTokens * known.factor) / Math.max(1, messages);
    const isOverhead = messages > 0 && fixedTokens === 0 && overhead >= leastOverhead && overhead <= mostOverhead;
    const overheads = calibration.overheads ?? {};
    return isOverhead
      ? { ...calibration, overheads: withValue(overheads, counter, Math.round(overhead), mostOverheads) }
      : calibration;
  }
  const textTokens = observedTokens - fixedTokens - messages * known.overhead.tokens;
  if (observedTokens < smallestTokens || textTokens <= 0 || fixedTokens > textTokens / 4) return calibration;
  const prior = counter.profile.factor;
  const ratio = textTokens / bareTokens;
  if (ratio > prior * mostDeviation || ratio < prior / mostDeviation) return calibration;
  return { ...calibration, ratios: withValue(calibration.ratios, counter, Math.round(ratio * 1e4) / 1e4, mostRatios) };
}

/** Each list is limited, because the caller stores the calibration and it must not grow forever. */
function withValue(
  values: Readonly<Record<string, readonly number[]>>,
  counter: TokenCounter,
  value: number,
  mostValues: number,
): Readonly<Record<string, readonly number[]>> {
  const { [calibrationKey(counter)]: known = [], ...others } = values;
  const kept = Object.entries(others).slice(-(mostModels - 1));
  return { ...Object.fromEntries(kept), [calibrationKey(counter)]: [...known, value].slice(-mostValues) };
}

/**
 * Returns the median of the observed ratios, drawn towards the prior while there are few observations. It uses the
 * median because one outlier of a mean takes twenty observations to wear off.
 */
export function calibratedFactor(calibration: Calibration, counter: TokenCounter): CalibratedFactor {
  const { factor: prior, spread } = counter.profile;
  const ratios = calibration.ratios[calibrationKey(counter)] ?? [];
  const observations = ratios.length;
  const overhead = calibratedOverhead(calibration, counter);
  if (observations === 0) return { factor: prior, ...uncalibratedBand(counter), observations, overhead };
  const sorted = ratios.toSorted((a, b) => a - b);
  const weight = observations / (observations + priorWeight);
  const towardsPrior = (observed: number): number => prior ** (1 - weight) * observed ** weight;
  const factor = towardsPrior(quantile(sorted, 0.5));
  // The spread of the prior gives way to the observed ratios: nine of ten steps lie within the band.
  const low = Math.min(quantile(sorted, 0.05), factor * (1 - spread * (1 - weight)));
  const high = Math.max(quantile(sorted, 0.95), factor * (1 + Math.max(spread, uncalibratedHigh - 1) * (1 - weight)));
  return { factor, low, high, observations, overhead };
}

function calibratedOverhead(calibration: Calibration, counter: TokenCounter): CalibratedFactor["overhead"] {
  const observed = calibration.overheads?.[calibrationKey(counter)] ?? [];
  const sorted = observed.toSorted((a, b) => a - b);
  const weight = sorted.length / (sorted.length + priorWeight);
  const room = overheadSpread * (1 - weight);
  if (sorted.length === 0)
    return { tokens: messageOverheadTokens, low: messageOverheadTokens - room, high: messageOverheadTokens + room };
  const tokens = messageOverheadTokens * (1 - weight) + quantile(sorted, 0.5) * weight;
  return {
    tokens,
    low: Math.min(quantile(sorted, 0.05), tokens - room),
    high: Math.max(quantile(sorted, 0.95), tokens + room),
  };
}

/** Uses the sample rule (share of n + 1), because with few observations it picks the outermost value. */
function quantile(sorted: readonly number[], share: number): number {
  const position = Math.min(sorted.length - 1, Math.max(0, share * (sorted.length + 1) - 1));
  const below = sorted[Math.floor(position)] as number;
  const above = sorted[Math.ceil(position)] as number;
  return below + (above - below) * (position - Math.floor(position));
}

function calibrationKey(counter: TokenCounter): string {
  return `${canonicalModelId(counter.model.modelId)} ${counter.version}`;
}

/** Reads a stored calibration. Returns null if the value is invalid, so that the caller can report a fresh start. */
export function readCalibration(value: unknown): Calibration | null {
  if (!isFields(value) || value["v"] !== 1 || !isFields(value["ratios"])) return null;
  const ratios = readValues(value["ratios"], isRatio);
  if (value["overheads"] === undefined) return ratios === null ? null : { v: 1, ratios };
  const overheads = isFields(value["overheads"]) ? readValues(value["overheads"], Number.isFinite) : null;
  return ratios === null || overheads === null ? null : { v: 1, ratios, overheads };
}

function readValues(values: Fields, isValue: (value: unknown) => boolean): Calibration["ratios"] | null {
  const entries = Object.entries(values);
  const isRead = entries.every(([, list]) => Array.isArray(list) && list.every(isValue));
  return isRead ? (Object.fromEntries(entries) as Calibration["ratios"]) : null;
}

function isRatio(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}
