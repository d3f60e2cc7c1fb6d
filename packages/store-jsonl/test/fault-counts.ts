import type { TestContext } from "vitest";

declare module "vitest" {
  interface TaskMeta {
    /** What the run's `faults:` line adds up: states of a disk that were opened, processes that were killed. */
    faults?: { readonly states: number; readonly kills: number };
  }
}

/** Says how many faults a test went through; the test reporter prints the sum. */
export function countFaults(
  { task }: TestContext,
  { states = 0, kills = 0 }: { states?: number; kills?: number },
): void {
  task.meta.faults = {
    states: (task.meta.faults?.states ?? 0) + states,
    kills: (task.meta.faults?.kills ?? 0) + kills,
  };
}
