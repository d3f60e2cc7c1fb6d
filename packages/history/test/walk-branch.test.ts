import { describe, expect, it } from "vitest";
import { walkBranch } from "../src/walk-branch.ts";
import { storedRecords, user, type RecordSketch } from "./stored-records.ts";

function walk(
  sketches: readonly RecordSketch[],
  headId: string | null,
  firstSeq = 1,
): { ids: string[]; codes: string[] } {
  const { path, findings } = walkBranch(storedRecords(sketches, firstSeq), headId);
  return { ids: path.map((record) => record.id), codes: findings.map((finding) => finding.code) };
}

const said = (id: string, parentId?: string | null): RecordSketch =>
  user(id, { id, ...(parentId === undefined ? {} : { parentId }) });

describe("walkBranch", () => {
  it("goes from the root to the head along parentId", () => {
    expect(walk([said("a"), said("b"), said("c", "a"), said("d")], "d")).toEqual({ ids: ["a", "c", "d"], codes: [] });
    expect(walk([said("a"), said("b"), said("c", "a"), said("d")], "b")).toEqual({ ids: ["a", "b"], codes: [] });
  });

  it("gives nothing for an empty head and for no records", () => {
    expect(walk([said("a")], null)).toEqual({ ids: [], codes: [] });
    expect(walk([], "a")).toEqual({ ids: [], codes: ["HEAD_UNKNOWN"] });
  });

  it("takes the last main record when no record is the head", () => {
    const sketches = [said("a"), said("b"), { type: "label", id: "l", targetId: "a" }];
    expect(walk(sketches, "nobody")).toEqual({ ids: ["a", "b"], codes: ["HEAD_UNKNOWN"] });
  });

  it("leaves side records aside unless a main record hangs on one", () => {
    const label = { type: "label", id: "l", targetId: "a" };
    expect(walk([said("a"), label, said("b", "a")], "b").ids).toEqual(["a", "b"]);
    expect(walk([said("a"), label, said("b", "l")], "b").ids).toEqual(["a", "l", "b"]);
  });

  it("finds a parent that lies behind many side records", () => {
    const labels = Array.from({ length: 100 }, (_, index) => ({
      type: "label",
      id: `l${index}`,
      parentId: "a",
      targetId: "a",
    }));
    expect(walk([said("a"), ...labels, said("b", "a")], "b")).toEqual({ ids: ["a", "b"], codes: [] });
  });

  it("attaches an orphan to the main record before it, so that nothing above is hidden", () => {
    expect(walk([said("a"), said("b", "gone"), said("c")], "c")).toEqual({
      ids: ["a", "b", "c"],
      codes: ["ORPHAN_PARENT"],
    });
    const label = { type: "label", id: "l", targetId: "a" };
    expect(walk([said("a"), label, said("b", "gone")], "b")).toEqual({ ids: ["a", "b"], codes: ["ORPHAN_PARENT"] });
    expect(walk([said("a", "gone"), said("b")], "b")).toEqual({ ids: ["a", "b"], codes: ["ORPHAN_PARENT"] });
  });

  it("ends where a window of the log begins", () => {
    expect(walk([said("y", "x"), said("z")], "z", 50)).toEqual({ ids: ["y", "z"], codes: [] });
  });

  it("does not mix in another branch when the head's branch leaves the window", () => {
    const sketches = [said("y", "x"), said("z"), said("n", "before the window")];
    expect(walk(sketches, "n", 50)).toEqual({ ids: ["n"], codes: ["ORPHAN_PARENT"] });
  });

  it("ends at a self-parent, alone or with a duplicate id", () => {
    expect(walk([said("a"), said("b", "b"), said("c")], "c")).toEqual({ ids: ["a", "b", "c"], codes: ["SELF_PARENT"] });
    expect(walk([said("g"), said("g", "g"), said("h", "g")], "h")).toEqual({ ids: ["g", "g", "h"], codes: [] });
  });

  it("ends at a cycle, whatever its length", () => {
    expect(walk([said("a", "c"), said("b", "a"), said("c", "b")], "c")).toEqual({
      ids: ["a", "b", "c"],
      codes: ["PARENT_CYCLE"],
    });
    expect(walk([said("a", "b"), said("b", "a"), said("c", "b")], "c")).toEqual({
      ids: ["a", "b", "c"],
      codes: ["PARENT_CYCLE"],
    });
  });

  it("takes the nearest holder of a duplicate id before the child, and says so when it had to choose", () => {
    const far = Array.from({ length: 40 }, (_, index) => said(`f${index}`, null));
    const walked = walk([said("d", null), said("d", null), ...far, said("e", "d")], "e");
    expect(walked).toEqual({ ids: ["d", "e"], codes: ["DUPLICATE_ID"] });
  });

  it("follows a parent that is stored after its child", () => {
    expect(walk([said("b", "a"), said("c", "b"), said("a", null)], "c")).toEqual({ ids: ["a", "b", "c"], codes: [] });
  });

  it("stays linear on a log made to slow it down", () => {
    const sketches = Array.from({ length: 20_000 }, (_, index) =>
      index % 2 === 0 ? said("same", null) : said(`n${index}`, index === 1 ? null : `n${index - 2}`),
    );
    const reversed = Array.from({ length: 20_000 }, (_, index) =>
      said(`m${index}`, index === 19_999 ? null : `m${index + 1}`),
    );
    expect(walk(sketches, "n19999").ids).toHaveLength(10_000);
    expect(walk(reversed, "m0").ids).toHaveLength(20_000);
  }, 5_000);
});
