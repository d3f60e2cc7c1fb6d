import { median } from "../../benchmarks/measure.ts";
import type { SessionRef, SessionStore } from "../../packages/core/src/index.ts";
import type { MeaningIndex } from "../../packages/tools/src/internal.ts";

interface BesideFiller {
  readonly open: (name: string) => SessionStore;
  readonly indexOf: (store: SessionStore) => MeaningIndex;
  readonly ref: SessionRef;
  readonly rounds: number;
  /** States after how many rounds the filler gets its time: it starts when nothing was written for a second. */
  readonly pauseEvery: number;
  readonly work: (store: SessionStore, round: number) => Promise<void>;
}

/**
 * Runs work on a store alone and on one beside its filler by turns, so that other work on the machine meets both alike.
 * Returns the medians in ms, and the median of the differences.
 */
export async function pairsBesideFiller(
  options: BesideFiller,
): Promise<Readonly<Record<"alone" | "beside" | "difference", string>>> {
  const { open, indexOf, ref, rounds, pauseEvery, work } = options;
  const stores = [false, true].map((isFilled) => {
    const store = open(`append${isFilled ? "beside" : "alone"}`);
    return { store, index: isFilled ? indexOf(store) : null, times: [] as number[] };
  });
  for (const { store } of stores) await store.save(ref, { sessionId: "s0" }, { ifRevision: null });
  for (let round = 0; round < rounds; round++)
    for (const { store, index, times } of round % 2 === 0 ? stores : stores.toReversed()) {
      const startedMs = performance.now();
      await work(store, round);
      times.push(performance.now() - startedMs);
      index?.poke();
      if (round % pauseEvery === pauseEvery - 1) await new Promise((resolve) => setTimeout(resolve, 1200));
    }
  for (const { store, index } of stores) {
    await index?.close();
    await store.close();
  }
  const [alone = [], beside = []] = stores.map(({ times }) => times);
  const differences = beside.map((ms, at) => ms - (alone[at] ?? 0));
  const shown = (values: readonly number[]): string => median(values).toFixed(3);
  return { alone: shown(alone), beside: shown(beside), difference: shown(differences) };
}
