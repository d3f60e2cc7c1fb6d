import { describe, expect, it } from "vitest";
import { readFreshWordings, scoreOf } from "./fresh-wordings.ts";

const rows = readFreshWordings();
const open = rows.filter(({ half }) => half === "open");
const heldOut = rows.filter(({ half }) => half === "held-out");

describe("errors in words that no rule was written from", () => {
  it("are more than a hundred overflows and more than a hundred that only sound like one", () => {
    expect(rows.filter(({ kind }) => kind !== null).length).toBeGreaterThan(100);
    expect(rows.filter(({ kind }) => kind === null).length).toBeGreaterThan(100);
  });

  it("are told apart without a false alarm", { tags: ["slow"] }, () => {
    expect(scoreOf(rows).falseAlarms).toEqual([]);
  });

  it("are all found, and of the right kind, in the half that rules were made better by", () => {
    const score = scoreOf(open);
    expect(score.missed).toEqual([]);
    expect(score.rightKind).toBe(score.overflows);
  });

  it("are found nine times of ten in the half that no rule was made better by", () => {
    const score = scoreOf(heldOut);
    expect(score.found / score.overflows).toBeGreaterThan(0.9);
    expect(score.rightKind / score.overflows).toBeGreaterThan(0.9);
  });
});
