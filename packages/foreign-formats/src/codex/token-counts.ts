import { isFields, type Fields } from "@throughline/core/internal";
import type { Usage } from "@throughline/core";

interface Totals {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly reasoning: number;
}

const none: Totals = { input: 0, cached: 0, output: 0, reasoning: 0 };

/**
 * Computes the tokens of each call from the totals that Codex writes after it. Codex repeats a total when no tokens
 * were used since, so its count for the last call would count twice.
 */
export class TokenCounts {
  #before: Totals = none;

  /** Null means that the event states no totals, or that they did not grow. */
  next(info: unknown): Usage | null {
    const totals = isFields(info) ? totalsOf(info["total_token_usage"]) : null;
    if (totals === null) return null;
    // Smaller totals mean that Codex restarted the count, so the whole total is new.
    const isFurther = keys.every((key) => totals[key] >= this.#before[key]);
    const before = isFurther ? this.#before : none;
    this.#before = totals;
    const cacheRead = totals.cached - before.cached;
    const input = totals.input - before.input - cacheRead;
    const output = totals.output - before.output;
    const reasoning = totals.reasoning - before.reasoning;
    const totalTokens = input + cacheRead + output;
    if (totalTokens <= 0) return null;
    const usage = { input: Math.max(0, input), output, cacheRead, cacheWrite: 0, totalTokens };
    return reasoning > 0 ? { ...usage, reasoning } : usage;
  }
}

const keys = ["input", "cached", "output", "reasoning"] as const;

function totalsOf(totals: unknown): Totals | null {
  if (!isFields(totals)) return null;
  const found = {
    input: count(totals, "input_tokens"),
    cached: count(totals, "cached_input_tokens"),
    output: count(totals, "output_tokens"),
    reasoning: count(totals, "reasoning_output_tokens"),
  };
  return keys.every((key) => Number.isSafeInteger(found[key]) && found[key] >= 0) ? found : null;
}

function count(totals: Fields, name: string): number {
  const value = totals[name] ?? 0;
  return typeof value === "number" ? value : Number.NaN;
}
