import { join } from "node:path";
import { firstColumn, specTables, stepTable } from "@throughline/test-kit";
import { describe, expect, it } from "vitest";
import { compactionSteps, ladderSteps, stepFrom } from "../src/compaction-steps.ts";
import { afterFailure, retryStateAt, retrySteps } from "../src/retry-steps.ts";

const spec = join(import.meta.dirname, "../SPEC.md");

type Table = Readonly<Record<string, Readonly<Record<string, string | null>>>>;

/** The states that can be reached from one, and those nothing leads out of. */
function explore(table: Table, from: string): { readonly reached: string[]; readonly final: string[] } {
  const reached = new Set([from]);
  for (const state of reached)
    for (const next of Object.values(table[state] ?? {})) if (next !== null) reached.add(next);
  const final = Object.keys(table).filter((state) => Object.values(table[state] ?? {}).every((next) => next === null));
  return { reached: [...reached].toSorted(), final: final.toSorted() };
}

describe("the states of SPEC.md", () => {
  it("are those of a compaction, in every state under every step", () => {
    const [table = []] = specTables(spec, "Table of a compaction");
    expect(stepTable(table)).toEqual(compactionSteps);
    expect(firstColumn(specTables(spec, "States of a compaction")[0] ?? [])).toEqual(Object.keys(compactionSteps));
    expect(firstColumn(specTables(spec, "Steps of a compaction")[0] ?? [])).toEqual(
      Object.keys(compactionSteps.planning),
    );
    const { reached, final } = explore(compactionSteps, "planning");
    expect(reached).toEqual(Object.keys(compactionSteps).toSorted());
    expect(final).toEqual(["applied", "nothing", "stopped", "superseded"]);
    expect(() => stepFrom(compactionSteps, "applied", "planned")).toThrow(TypeError);
  });

  it("are those of the ladder, which ends in a summary, no gain, or an abort", () => {
    const [rungs = [], table = []] = specTables(spec, "The ladder");
    expect(stepTable(table)).toEqual(ladderSteps);
    expect(firstColumn(rungs)).toEqual(Object.keys(ladderSteps).slice(0, 5));
    const { reached, final } = explore(ladderSteps, "checkpoint");
    expect(reached).toEqual(Object.keys(ladderSteps).toSorted());
    expect(final).toEqual(["no-gain", "stopped", "written"]);
  });

  it("are those of a retry, which waits longer each time and gives up at its limit", () => {
    const [states = [], steps = [], table = []] = specTables(spec, "States of a retry");
    expect(stepTable(table)).toEqual(retrySteps);
    expect(firstColumn(states)).toEqual(Object.keys(retrySteps));
    expect(firstColumn(steps)).toEqual(Object.keys(retrySteps.due));
    expect(explore(retrySteps, "due").reached).toEqual(Object.keys(retrySteps).toSorted());
    const waits: (number | null)[] = [];
    let retry = { attempts: 0, nextAtMs: 0 as number | null, fromSeq: 1 };
    while (retry.nextAtMs !== null) {
      retry = afterFailure(retry, 1000, { maxAttempts: 5, firstDelayMs: 100, maxDelayMs: 300 });
      waits.push(retry.nextAtMs);
    }
    expect(waits).toEqual([1100, 1200, 1300, 1300, null]);
    expect([1099, 1100].map((nowMs) => retryStateAt({ ...retry, nextAtMs: 1100 }, nowMs))).toEqual(["waiting", "due"]);
    expect(retryStateAt(retry, 1e15)).toBe("given-up");
    // A clock that was set back by more than the longest wait.
    expect(retryStateAt({ ...retry, nextAtMs: 86_400_000 }, 1000)).toBe("due");
  });
});
