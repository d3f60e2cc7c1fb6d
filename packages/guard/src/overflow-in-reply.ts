import { classifyOverflow, isWindowStop } from "./classify-overflow.ts";
import type { OverflowClassification } from "./overflow.ts";
import type { ReplyFacts } from "./read-reply.ts";

const windowStop = { stopReason: "model_context_window_exceeded" };

/** The overflow that a reply of status 200 reports; null if it reports none. */
export function overflowInReply(
  { error, stopReason, outputTokens, promptTokens }: ReplyFacts,
  windowTokens: number | null,
  provider: string | null,
): OverflowClassification | null {
  const stated = error === null ? null : classifyOverflow(error, { provider });
  if (stated?.overflow === true) return stated;
  if (stopReason !== null && isWindowStop(stopReason)) return classifyOverflow({ stopReason });
  // Some servers fill the window with the prompt and stop before the first word.
  const isFilled = stopReason === "length" && outputTokens === 0 && windowTokens !== null;
  return isFilled && (promptTokens ?? 0) >= windowTokens * 0.99 ? classifyOverflow(windowStop) : null;
}

/**
 * The size of the prompt that an overflow states; null when it states none, or one that would have fitted. A text that was
 * cut off ends in the middle of a number.
 */
export function believable(
  { kind, inputTokens, limitTokens }: OverflowClassification,
  windowTokens: number | null,
): number | null {
  const window = limitTokens ?? windowTokens;
  const fits = inputTokens !== null && window !== null && inputTokens < window / 2;
  return kind === "input" && fits ? null : inputTokens;
}

/** The overflow of a prompt of which a server left a part out without saying so. */
export function silentOverflow(windowTokens: number | null): OverflowClassification {
  return { ...classifyOverflow(windowStop), limitTokens: windowTokens, rule: "silent-truncation" };
}
