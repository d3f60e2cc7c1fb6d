import { isFields } from "@throughline/core/internal";
import { calibratedFactor } from "./calibration.ts";
import { countPrefix, tokensOf, type EstimatedRequest, type EstimateOptions } from "./context-estimate.ts";
import type { Countable } from "./message-parts.ts";

/** Splits the tokens of a context by origin. The parts add up to the total exactly. */
export interface ContextBreakdown {
  /** Counts the tokens of the system prompt. */
  readonly systemTokens: number;
  /** Counts the tokens of the tool definitions. */
  readonly toolsTokens: number;
  /** Counts the tokens of compaction and branch summaries. */
  readonly summaryTokens: number;
  /** Counts the tokens of messages, without tool results. */
  readonly messageTokens: number;
  /** Counts the tokens of tool results. */
  readonly toolResultTokens: number;
}

type MessageClass = "summary" | "message" | "toolResult";

const classOfRole: ReadonlyMap<unknown, MessageClass> = new Map([
  ["compactionSummary", "summary"],
  ["branchSummary", "summary"],
  ["toolResult", "toolResult"],
  ["tool", "toolResult"],
]);

/**
 * Splits a total in proportion to the counts of its parts. If the request has neither a system prompt (`system`
 * undefined) nor tools, the unexplained rest of the total counts as system. The function counts every message, so call
 * it for display and not in every turn.
 */
export function breakDown(
  request: EstimatedRequest,
  { counter, calibration, totalTokens }: Omit<EstimateOptions, "actual"> & { readonly totalTokens: number },
): ContextBreakdown {
  const factor = calibratedFactor(calibration, counter);
  const tokensOfClass = (wanted: MessageClass): number =>
    tokensOf(counter.countMessages(request.messages.filter((message) => classOf(message) === wanted)), factor);
  const toolsTokens = tokensOf(countPrefix({ messages: [], tools: request.tools ?? [] }, counter), factor);
  const counted = [
    tokensOf(countPrefix({ messages: [], system: request.system ?? null }, counter), factor),
    toolsTokens,
    tokensOfClass("summary"),
    tokensOfClass("message"),
    tokensOfClass("toolResult"),
  ];
  const isPrefixUnknown = request.system === undefined && toolsTokens === 0;
  if (isPrefixUnknown) counted[0] = Math.max(0, totalTokens - sum(counted));
  const [systemTokens = 0, tools = 0, summaryTokens = 0, messageTokens = 0, toolResultTokens = 0] = shareTokens(
    totalTokens,
    counted,
  );
  return { systemTokens, toolsTokens: tools, summaryTokens, messageTokens, toolResultTokens };
}

function classOf(message: Countable): MessageClass {
  if (!isFields(message)) return "message";
  const type = message["type"];
  if (type === "compaction" || type === "branch_summary") return "summary";
  const inner = isFields(message["record"]) ? message["record"]["message"] : message["message"];
  return classOfRole.get(message["role"] ?? (isFields(inner) ? inner["role"] : undefined)) ?? "message";
}

/**
 * Returns whole numbers in proportion to the weights. They add up to the total: the largest remainders get the leftover
 * tokens.
 */
export function shareTokens(total: number, weights: readonly number[]): number[] {
  const weight = sum(weights);
  if (weight === 0) return weights.map((_, index) => (index === 0 ? total : 0));
  const exact = weights.map((part) => (total * part) / weight);
  const whole = exact.map(Math.floor);
  const order = exact
    .map((part, index) => ({ index, rest: part - Math.floor(part) }))
    .toSorted((a, b) => b.rest - a.rest || a.index - b.index);
  for (const { index } of order.slice(0, total - sum(whole))) whole[index] = (whole[index] ?? 0) + 1;
  return whole;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
