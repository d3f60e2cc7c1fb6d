import type { SessionRef } from "../../packages/core/src/index.ts";
import type { SpikeStore } from "./spike-store.ts";

/** What every scenario gets. */
export interface ScenarioContext {
  /** One store a connection. */
  readonly stores: readonly SpikeStore[];
  readonly quick: boolean;
  readonly random: SeededRandom;
  /** A session that nobody else uses, created. */
  createSession(): Promise<SessionRef>;
}

/** The figures of a scenario, one a line. A scenario that finds a rule broken throws. */
export type Scenario = (context: ScenarioContext) => Promise<readonly string[]>;

export interface SeededRandom {
  /** A number from 0 to below `limit`. */
  below(limit: number): number;
  chance(share: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
}

/** Mulberry32: the same seed, the same run. */
export function createSeededRandom(seed: number): SeededRandom {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return {
    below: (limit) => Math.floor(next() * limit),
    chance: (share) => next() < share,
    pick<Item>(items: readonly Item[]): Item {
      const item = items[Math.floor(next() * items.length)];
      if (item === undefined) throw new RangeError("nothing to pick from");
      return item;
    },
  };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (middle === undefined) throw new RangeError("the median of nothing");
  return middle;
}
