import { conformanceCases } from "../src/conformance-cases.ts";
import { runConformance } from "@throughline/store-conformance";
import { expect, it } from "vitest";
import { maintained } from "./mutants/maintenance-mutants.ts";
import { mutantSetup } from "./mutants/mutant.ts";

it("the maintenance cases pass a store that keeps to them", async () => {
  const cases = conformanceCases.filter(({ id }) => id.startsWith("maintenance/"));
  const setup = mutantSetup({ name: "sound", foundBy: "", handle: (inner) => maintained(inner, {}) });
  const results = await runConformance({ ...setup, cases });
  expect(results.map(({ id, passed, error }) => [id, passed, error])).toEqual(cases.map(({ id }) => [id, true, null]));
  expect(cases).toHaveLength(5);
});
