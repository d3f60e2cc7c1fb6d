import { conformanceCases } from "@throughline/store-conformance/internal";
import { describe, expect, it } from "vitest";
import { isLongRun } from "../../../tools/test-size.ts";
import { killsOf, kitProblems, type KillRow } from "./kill-matrix.ts";
import { mutants } from "./mutants/mutants.ts";

describe("the kit finds broken stores", () => {
  const rows: KillRow[] = [];

  for (const mutant of mutants) {
    it(`finds a store that is wrong by "${mutant.name}"`, async () => {
      const row = await killsOf(mutant, { isQuick: !isLongRun });
      rows.push(row);
      expect(row.foundBy).toContain(mutant.foundBy);
    });
  }

  it("has no case that finds nothing", () => {
    expect(rows).toHaveLength(mutants.length);
    expect(kitProblems(rows)).toEqual([]);
  });

  it("finds nothing wrong with the store that the broken ones are made from", async () => {
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
