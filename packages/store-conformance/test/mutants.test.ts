import { conformanceCases } from "../src/conformance-cases.ts";
import { describe, expect, it } from "vitest";
import { isLongRun } from "../../../tools/test-size.ts";
import { killsOf, kitProblems, type KillRow } from "./kill-matrix.ts";
import { mutants } from "./mutants/mutants.ts";

/** These wait for a lock until their time is over; the long tier has them. */
const waitLong: ReadonlySet<string> = new Set(["a signal does not end the wait", "the lock is waited for without end"]);

/** These wait for a lock or an event for seconds. */
const waitsForSeconds: ReadonlySet<string> = new Set([
  "all agents share one lock",
  "an error of the work keeps the lock",
  "the lock of a process that was killed stays",
  "the namespace is left out of the lock",
  "watch ends with the first page",
]);

describe("the kit finds broken stores", () => {
  const rows: KillRow[] = [];

  const tried = mutants.filter(({ name }) => isLongRun || !waitLong.has(name));
  for (const mutant of tried) {
    const tags = waitsForSeconds.has(mutant.name) ? ["slow"] : [];
    it(`finds a store that is wrong by "${mutant.name}"`, { tags }, async () => {
      const row = await killsOf(mutant, { isQuick: !isLongRun });
      rows.push(row);
      expect(row.foundBy).toContain(mutant.foundBy);
    });
  }

  // Needs the rows of the slow ones.
  it("has no case that finds nothing", { tags: ["slow"] }, () => {
    expect(rows).toHaveLength(tried.length);
    expect(kitProblems(rows)).toEqual([]);
  });

  it("finds nothing wrong with the store that the broken ones are made from", { tags: ["slow"] }, async () => {
    const { foundBy } = await killsOf({ name: "sound", foundBy: "" });
    expect(foundBy).toEqual([]);
  });

  it("names cases and mutants once", () => {
    const ids = conformanceCases.map(({ id }) => id);
    const names = mutants.map(({ name }) => name);
    expect(new Set(ids).size).toBe(ids.length);
    expect(new Set(names).size).toBe(names.length);
  });
});
