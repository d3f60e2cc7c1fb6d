import { tellListener } from "@throughline/core/internal";
import type { ContextEstimate } from "@throughline/tokens";
import { readErrorFacts } from "./error-facts.ts";
import type { GuardedRequest, GuardOptions } from "./guard-options.ts";
import type { OverflowClassification } from "./overflow.ts";

/** From so much of the window on, a refusal that nobody can read may mean the size. */
const suspectShare = 0.9;

/** Whether an error says nothing that can be read, and the request is so large that its size may be the reason. */
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

/** What a probe takes an unreadable refusal for. `inputTokens` is null where nothing was counted. */
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

/** The provider's own count; null where it has no endpoint for it, or the endpoint fails. */
export async function countedBy<Reply>(options: GuardOptions<Reply>, request: GuardedRequest): Promise<number | null> {
  try {
    return (await options.countTokens?.(request, options.signal ?? null)) ?? null;
  } catch (cause) {
    // Counting is an extra: without it the estimate decides.
    tellListener(options.onEvent, { name: "guard.count-failed", cause });
    return null;
  }
}

/** The window as the server states it; null where it cannot be asked. It may have answered all the same, and that counts. */
export async function statedWindow<Reply>({ readWindow, signal }: GuardOptions<Reply>): Promise<number | null> {
  return (await readWindow?.(signal ?? null).catch(() => null)) ?? null;
}
