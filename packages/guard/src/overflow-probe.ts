import { tellListener } from "@throughline/core/internal";
import type { ContextEstimate } from "@throughline/tokens";
import { readErrorFacts } from "./error-facts.ts";
import type { GuardedRequest, GuardOptions } from "./guard-options.ts";
import type { OverflowClassification } from "./overflow.ts";

/** Below this share of the window, an unreadable refusal is not treated as a sign of the size. */
const suspectShare = 0.9;

/** Returns true for an unreadable error when the request is large enough that its size may be the reason. */
export function mayBeOverflow(
  error: unknown,
  classification: OverflowClassification,
  estimate: ContextEstimate,
  windowTokens: number | null,
): boolean {
  if (classification.overflow || classification.category !== "unknown" || windowTokens === null) return false;
  const { status } = readErrorFacts(error);
  return (status === 400 || status === 422) && estimate.tokens > windowTokens * suspectShare;
}

/** Classifies an unreadable refusal as an overflow. `inputTokens` is null when no count proved it. */
export function probedOverflow(
  classification: OverflowClassification,
  windowTokens: number | null,
  inputTokens: number | null,
): OverflowClassification {
  return {
    ...classification,
    overflow: true,
    kind: "input",
    category: "context_overflow",
    inputTokens,
    limitTokens: inputTokens === null ? null : windowTokens,
    rule: inputTokens === null ? "probe:truncate" : "probe:count",
  };
}

/** Returns the provider's own count. Null when the provider has no count endpoint, or the endpoint fails. */
export async function countedBy<Reply>(options: GuardOptions<Reply>, request: GuardedRequest): Promise<number | null> {
  try {
    return (await options.countTokens?.(request, options.signal ?? null)) ?? null;
  } catch (cause) {
    // The count is optional: without a count the estimate decides.
    tellListener(options.onEvent, { name: "guard.count-failed", cause });
    return null;
  }
}

/** Asks the server for its window. An error counts as unknown, because the call itself may still succeed. */
export async function statedWindow<Reply>({ readWindow, signal }: GuardOptions<Reply>): Promise<number | null> {
  return (await readWindow?.(signal ?? null).catch(() => null)) ?? null;
}
