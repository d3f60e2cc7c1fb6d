import { classifyOverflow, isWindowStop } from "./classify-overflow.ts";
import type { OverflowClassification } from "./overflow.ts";
import type { ReplyFacts } from "./read-reply.ts";

const windowStop = { stopReason: "model_context_window_exceeded" };

/** Detects an overflow that a reply of status 200 reports; null when it reports none. */
export function overflowInReply(
  { error, stopReason, outputTokens, promptTokens }: ReplyFacts,
  windowTokens: number | null,
  provider: string | null,
): OverflowClassification | null {
  const stated = error === null ? null : classifyOverflow(error, { provider });
  if (stated?.overflow === true) return stated;
  if (stopReason !== null && isWindowStop(stopReason)) return classifyOverflow({ stopReason });
  // Some servers fill the window with the prompt and stop before the first token of the answer.
  const isFilled = stopReason === "length" && outputTokens === 0 && windowTokens !== null;
  return isFilled && (promptTokens ?? 0) >= windowTokens * 0.99 ? classifyOverflow(windowStop) : null;
}

/**
 * Returns the prompt size that an overflow states. Null when it states none, or a size that would have fitted. A
 * truncated error text may end in the middle of a number.
 */
export function believable(
  { kind, inputTokens, limitTokens }: OverflowClassification,
  windowTokens: number | null,
): number | null {
  const window = limitTokens ?? windowTokens;
  const fits = inputTokens !== null && window !== null && inputTokens < window / 2;
  return kind === "input" && fits ? null : inputTokens;
}

/** Builds the overflow for a server that left out a part of the prompt without an error. */
export function silentOverflow(windowTokens: number | null): OverflowClassification {
  return { ...classifyOverflow(windowStop), limitTokens: windowTokens, rule: "silent-truncation" };
}
