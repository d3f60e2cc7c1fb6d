import { isFields } from "./block-parts.ts";
import { canonicalModelId } from "./model-name.ts";
import { messageOverheadTokens, type TokenCount, type TokenCounter } from "./token-counter.ts";

/**
 * What has been learned of each model's tokenizer: tokens that were observed for one of the counter's, newest last.
 * Plain JSON, for the caller to keep.
 */
export interface Calibration {
  readonly v: 1;
  readonly ratios: Readonly<Record<string, readonly number[]>>;
}

export const emptyCalibration: Calibration = { v: 1, ratios: {} };

/** A size that was counted and has since been measured. */
export interface Observation {
  readonly counter: TokenCounter;
  readonly counted: TokenCount;
  /** For new messages, the prompt of the call that first held them less the occupancy before it. */
  readonly observedTokens: number;
}

/** The factor to multiply a count with, and how far its true value may lie off. */
export interface CalibratedFactor {
  readonly factor: number;
  readonly low: number;
  readonly high: number;
  /** Observations it rests on; 0 is the prior alone. */
  readonly observations: number;
}

/** In smaller steps the overhead of a message, which is not the vocabulary's, is too large a part. */
const smallestTokens = 300;
/** The prior counts as so many observations, so that the first few do not decide. */
const priorWeight = 8;
/** Older ones are forgotten: providers change tokenizers under a name. */
const mostRatios = 64;
const mostModels = 64;
/** A ratio further from the prior is no tokenizer: something else in the prompt changed. */
const mostDeviation = 2;
/** Until there is something to go by, room for the unexpected. */
const uncalibratedHigh = 1.2;

/**
 * Takes an observation in. Both sides must be large: where little was counted and much observed, a system prompt or
 * the tools changed. What is mostly images says nothing of the vocabulary.
 */
export function observe(calibration: Calibration, { counter, counted, observedTokens }: Observation): Calibration {
  const prior = counter.profile.factor;
  const textTokens = observedTokens - counted.fixedTokens - counted.messages * messageOverheadTokens;
  const isLarge = observedTokens >= smallestTokens && counted.bareTokens * prior >= smallestTokens;
  if (!isLarge || textTokens <= 0 || counted.fixedTokens > textTokens / 4) return calibration;
  const ratio = textTokens / counted.bareTokens;
  if (ratio > prior * mostDeviation || ratio < prior / mostDeviation) return calibration;
  const key = calibrationKey(counter);
  const { [key]: known = [], ...others } = calibration.ratios;
  const kept = Object.entries(others).slice(-(mostModels - 1));
  const rounded = Math.round(ratio * 1e4) / 1e4;
  return { v: 1, ratios: { ...Object.fromEntries(kept), [key]: [...known, rounded].slice(-mostRatios) } };
}

/**
 * The median of what was observed, drawn towards the prior while there is little of it. The median, because one
 * outlier of a mean takes twenty observations to wear off.
 */
export function calibratedFactor(calibration: Calibration, counter: TokenCounter): CalibratedFactor {
  const { factor: prior, spread } = counter.profile;
  const ratios = calibration.ratios[calibrationKey(counter)] ?? [];
  const observations = ratios.length;
  if (observations === 0) {
    const off = counter.method === "heuristic" || counter.method === "chars4" ? Math.max(spread, 0.3) : spread;
    return { factor: prior, low: prior * (1 - off), high: prior * Math.max(1 + off, uncalibratedHigh), observations };
  }
  const sorted = ratios.toSorted((a, b) => a - b);
  const weight = observations / (observations + priorWeight);
  const towardsPrior = (observed: number): number => prior ** (1 - weight) * observed ** weight;
  const factor = towardsPrior(quantile(sorted, 0.5));
  // The spread of the prior gives way to what was seen: nine of ten steps lie within it.
  const low = Math.min(quantile(sorted, 0.05), factor * (1 - spread * (1 - weight)));
  const high = Math.max(quantile(sorted, 0.95), factor * (1 + Math.max(spread, uncalibratedHigh - 1) * (1 - weight)));
  return { factor, low, high, observations };
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

/** Reads a kept calibration; null when it is none, so that the caller can say that it starts anew. */
export function readCalibration(value: unknown): Calibration | null {
  if (!isFields(value) || value["v"] !== 1 || !isFields(value["ratios"])) return null;
  const entries = Object.entries(value["ratios"]);
  const isRead = entries.every(([, ratios]) => Array.isArray(ratios) && ratios.every(isRatio));
  return isRead ? { v: 1, ratios: Object.fromEntries(entries) as Calibration["ratios"] } : null;
}

function isRatio(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}
