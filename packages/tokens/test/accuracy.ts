import { readFileSync } from "node:fs";
import { join } from "node:path";
import { calibratedFactor, emptyCalibration, observe } from "../src/calibration.ts";
import { estimateContext, tokensOf } from "../src/context-estimate.ts";
import { occupancyAfter } from "../src/occupancy.ts";
import { readUsage } from "../../core/src/call-usage.ts";
import type { ModelName } from "../src/model-name.ts";
import type { Occupancy } from "../src/occupancy.ts";
import type { TokenCount, TokenCounter } from "../src/token-counter.ts";

/** A step of a real conversation: what was added to the prompt, and how many tokens the provider said that was. */
export interface MeasuredStep {
  readonly messages: readonly object[];
  readonly observedTokens: number;
  /** A turn failed in between; what was sent of it depends on the program of the time. */
  readonly isAfterFailure: boolean;
  /** The reply before held thinking, which providers may leave out of the next prompt. */
  readonly isAfterThinking: boolean;
}

interface RecordedMessage {
  readonly role: string;
  readonly content?: string | readonly { readonly type: string }[];
  readonly provider?: string;
  readonly model?: string;
  readonly usage?: unknown;
  readonly stopReason?: string;
}

/** Steps between successive replies of one model, without a compaction in between, in the order of the file. */
export function readSteps(path: string, model: ModelName): MeasuredStep[] {
  const steps: MeasuredStep[] = [];
  let before: Occupancy | null = null;
  let messages: object[] = [];
  let hasFailure = false;
  let hasThinking = false;
  for (const line of readFileSync(path, "utf8").trimEnd().split("\n")) {
    const record = JSON.parse(line) as { readonly type: string; readonly message?: RecordedMessage };
    if (record.type === "compaction") before = null;
    if (record.type !== "message" || record.message === undefined) continue;
    const { message } = record;
    const usage = readUsage(message.usage);
    const isFailed = message.stopReason === "aborted" || message.stopReason === "error";
    if (message.role !== "assistant" || isFailed || usage === null) {
      hasFailure ||= message.role === "assistant";
      messages.push(message);
      continue;
    }
    const of: ModelName = { provider: message.provider ?? null, modelId: message.model ?? "" };
    if (before !== null && of.modelId === model.modelId && before.model.modelId === of.modelId) {
      const observedTokens = usage.promptTokens - before.tokens;
      steps.push({ messages, observedTokens, isAfterFailure: hasFailure, isAfterThinking: hasThinking });
    }
    before = occupancyAfter({ usage: message.usage, model: of, stopReason: message.stopReason ?? null }, before);
    messages = [];
    hasFailure = false;
    hasThinking = Array.isArray(message.content) && message.content.some((block) => block.type === "thinking");
  }
  return steps;
}

/** Mean error of the steps of 300 tokens and more, in percent of what was observed. */
export interface Accuracy {
  /** Without steps after a failed turn or after thinking, and without those of 60,000 tokens and more. */
  readonly comparable: number;
  readonly comparableSteps: number;
  readonly all: number;
  readonly allSteps: number;
}

/** Each step is predicted before it is observed. */
export function measureAccuracy(steps: readonly MeasuredStep[], predict: (step: MeasuredStep) => number): Accuracy {
  const comparable: number[] = [];
  const all: number[] = [];
  for (const step of steps) {
    const predicted = predict(step);
    if (step.observedTokens < 300) continue;
    const error = (100 * Math.abs(predicted - step.observedTokens)) / step.observedTokens;
    all.push(error);
    if (isComparable(step)) comparable.push(error);
  }
  return { comparable: mean(comparable), comparableSteps: comparable.length, all: mean(all), allSteps: all.length };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The estimate the package publishes, with or without learning from the steps before. */
export function estimateWith(counter: TokenCounter, isCalibrated: boolean): (step: MeasuredStep) => number {
  let calibration = emptyCalibration;
  return ({ messages, observedTokens }) => {
    const counted = counter.countMessages(messages);
    const predicted = tokensOf(counted, calibratedFactor(calibration, counter));
    if (isCalibrated) calibration = observe(calibration, { counter, counted, observedTokens });
    return predicted;
  };
}

/**
 * The share of the comparable steps whose size lay within the band published before it was known, in percent; of those of
 * 300 tokens and more, or of all that added anything.
 */
export function bandCoverage(steps: readonly MeasuredStep[], counter: TokenCounter, leastTokens = 300): number {
  let calibration = emptyCalibration;
  const within: number[] = [];
  for (const step of steps) {
    const { messages, observedTokens } = step;
    const actual = { tokens: 0, coversMessages: 0 };
    const { lowTokens, highTokens } = estimateContext({ messages }, { counter, calibration, actual });
    const isWithin = observedTokens >= lowTokens && observedTokens <= highTokens;
    if (isComparable(step, leastTokens)) within.push(isWithin ? 100 : 0);
    calibration = observe(calibration, { counter, counted: counter.countMessages(messages), observedTokens });
  }
  return mean(within);
}

function isComparable({ observedTokens, isAfterFailure, isAfterThinking }: MeasuredStep, leastTokens = 300): boolean {
  return observedTokens >= leastTokens && observedTokens < 60_000 && !isAfterFailure && !isAfterThinking;
}

/** A vocabulary alone: its tokens are taken for the model's. */
export function bareCountWith(counter: TokenCounter): (step: MeasuredStep) => number {
  return ({ messages }): number => (counter.countMessages(messages) satisfies TokenCount).bareTokens;
}

export const conversations: readonly { readonly name: string; readonly file: string; readonly model: ModelName }[] = [
  {
    name: "Opus",
    file: join("golden", "before-compaction.v3.jsonl"),
    model: { provider: "anthropic", modelId: "claude-opus-4-5" },
  },
  {
    name: "Sonnet",
    file: join("golden", "large-session.v3.jsonl"),
    model: { provider: "anthropic", modelId: "claude-sonnet-4-5" },
  },
];
