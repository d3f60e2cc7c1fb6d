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

/** Plain JSON, for the caller to keep. */
export interface Calibration {
  readonly v: 1;
  /** What has been learned of each model's tokenizer: tokens that were observed for one of the counter's, newest last. */
  readonly ratios: Readonly<Record<string, readonly number[]>>;
  /** Tokens that a message of a small step cost beside its text, newest last. Absent until one was observed. */
  readonly overheads?: Readonly<Record<string, readonly number[]>>;
}

/** A calibration that has measured nothing yet. */
export const emptyCalibration: Calibration = { v: 1, ratios: {} };

/** A size that was counted and has since been measured. */
export interface Observation {
  /** The counter that made the count. */
  readonly counter: TokenCounter;
  /** What was counted. */
  readonly counted: TokenCount;
  /** For new messages, the prompt of the call that first held them less the occupancy before it. */
  readonly observedTokens: number;
}

/** The factor to multiply a count with, and how far its true value may lie off. */
export interface CalibratedFactor {
  /** The factor itself. */
  readonly factor: number;
  /** The lower end of the band. */
  readonly low: number;
  /** The upper end of the band. */
  readonly high: number;
  /** Observations it rests on; 0 is the prior alone. */
  readonly observations: number;
  /** What a message costs beside its text, and how far that may lie off. */
  readonly overhead: {
    /** Tokens of a message beside its text. */
    readonly tokens: number;
    /** The lower end of the band. */
    readonly low: number;
    /** The upper end of the band. */
    readonly high: number;
  };
}

/** In smaller steps the overhead of a message, which is not the vocabulary's, is too large a part. */
const smallestTokens = 300;
/** The prior counts as this number of observations, so that the first few do not decide. */
const priorWeight = 8;
/** Older ones are forgotten: providers change tokenizers under a name. */
const mostRatios = 64;
const mostOverheads = 32;
const mostModels = 64;
/** A ratio further from the prior is no tokenizer: something else in the prompt changed. */
const mostDeviation = 2;
/** A remainder beyond these is no overhead: something else came with the message. */
const leastOverhead = -30;
const mostOverhead = 90;

/**
 * Takes an observation in. A large step shows the error of the tokenizer, if both sides are large. If little was
 * counted and much observed, the system prompt or the tools changed. A small step shows what a message costs beside its
 * text. What is mostly images says nothing of either.
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

/** With one more value of a model, which comes last. */
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
 * The median of what was observed, drawn towards the prior while there is little of it. The median, because one
 * outlier of a mean takes twenty observations to wear off.
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
  // The spread of the prior gives way to what was seen: nine of ten steps lie within it.
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

/** By the rule for samples (share of n + 1), which of few observations takes the outermost. */
function quantile(sorted: readonly number[], share: number): number {
  const position = Math.min(sorted.length - 1, Math.max(0, share * (sorted.length + 1) - 1));
  const below = sorted[Math.floor(position)] as number;
  const above = sorted[Math.ceil(position)] as number;
  return below + (above - below) * (position - Math.floor(position));
}

function calibrationKey(counter: TokenCounter): string {
  return `${canonicalModelId(counter.model.modelId)} ${counter.version}`;
}

/** Reads a stored calibration; null if it is invalid, so that the caller can report that it starts again. */
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
