import type { Clock } from "@throughline/core";

/** Limits the tokens that are sent to an embedder on one day in UTC. */
export interface TokenBudget {
  /** Notes that tokens are about to be sent; false when they exceed what is left of the day. */
  take(tokens: number): boolean;
}

interface SpentTokens {
  readonly day: string;
  readonly tokens: number;
}

interface BudgetOptions {
  readonly maxTokensPerDay: number;
  readonly clock: Clock;
  /** Reads what was written last, by any process. */
  readonly read: () => unknown;
  readonly write: (spent: SpentTokens) => void;
}

/** Creates a budget that outlives the process. The first batch of a day is always sent, however large it is. */
export function createTokenBudget({ maxTokensPerDay, clock, read, write }: BudgetOptions): TokenBudget {
  return {
    take(tokens) {
      const day = new Date(clock.nowMs()).toISOString().slice(0, 10);
      const kept = (read() ?? {}) as Partial<Readonly<Record<keyof SpentTokens, unknown>>>;
      const spent = kept.day === day && typeof kept.tokens === "number" ? kept.tokens : 0;
      if (spent > 0 && spent + tokens > maxTokensPerDay) return false;
      write({ day, tokens: spent + tokens });
      return true;
    },
  };
}
