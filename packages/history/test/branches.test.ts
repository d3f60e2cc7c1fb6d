import { describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { contextFromSeq, planRetry, planRewind, planUndo } from "../src/plan-rewind.ts";
import { listBranches } from "../src/list-branches.ts";
import { assistant, compaction, storedRecords, text, user } from "./stored-records.ts";

const said = (value: string): ReturnType<typeof assistant> => assistant([text(value)]);
const talk = storedRecords([user("one"), said("a"), user("two"), said("b")]);

describe("rewind, undo and retry", () => {
  it("a rewind is a leaf record and a word to the store", () => {
    expect(planRewind(talk, "r4", "r2")).toEqual({
      drafts: [{ type: "leaf", targetId: "r2" }],
      options: { rewindTo: "r2", expect: { head: "r4" }, windowFromSeq: 1, entry: { waiting: undefined } },
      leftIds: ["r3", "r4"],
    });
  });

  it("refuses a record that is none, or is not on the way", () => {
    const log = storedRecords([user("one"), { type: "label", targetId: "r1" }]);
    for (const id of ["gone", "r2"]) {
      expect(() => planRewind(log, "r1", id)).toThrowError(expect.objectContaining({ code: "RECORD_NOT_FOUND" }));
    }
  });

  it("undo takes the request back too, retry keeps it", () => {
    expect(planUndo(talk, "r4")).toMatchObject({
      options: { rewindTo: "r2" },
      request: { id: "r3" },
      leftIds: ["r3", "r4"],
    });
    expect(planUndo(talk, "r4", 2)).toMatchObject({ options: { rewindTo: null }, request: { id: "r1" } });
    expect(planUndo(talk, "r4", 3)).toBeNull();
    expect(planRetry(talk, "r4")).toMatchObject({ options: { rewindTo: "r3" }, leftIds: ["r4"] });
    expect(planRetry(talk, "r3")).toMatchObject({ drafts: [], options: { rewindTo: "r3" } });
    expect(planRetry([], null)).toBeNull();
  });

  it("leaves what was said readable, and the new branch knows nothing of it", () => {
    const plan = planUndo(talk, "r4");
    const back = plan?.options.rewindTo ?? null;
    const records = storedRecords([
      user("one"),
      said("a"),
      user("two"),
      said("b"),
      ...(plan?.drafts ?? []),
      user("three", { parentId: back }),
      said("c"),
    ]);
    const words = (headId: string): unknown[] =>
      buildContext(records, { headId }).messages.flatMap(({ content }) =>
        content.map((block) => (block.type === "text" ? block.text : block.type)),
      );
    expect(words("r7")).toEqual(["one", "a", "three", "c"]);
    expect(words("r4")).toEqual(["one", "a", "two", "b"]);
    expect(
      listBranches(records, "r7").map(({ headId, ownRecords, isCurrent }) => [headId, ownRecords, isCurrent]),
    ).toEqual([
      ["r7", 0, true],
      ["r4", 2, false],
    ]);
  });
});

describe("listBranches", () => {
  it("lists every end, with where it left the current branch", () => {
    const log = storedRecords([
      user("one", { id: "a" }),
      said("x"),
      user("two", { id: "b", parentId: "a" }),
      user("three", { id: "c", parentId: "b" }),
      user("four", { id: "d", parentId: "b" }),
      user("alone", { id: "e", parentId: null }),
    ]);
    expect(listBranches(log, "d").map(({ headId, forkId, ownRecords }) => [headId, forkId, ownRecords])).toEqual([
      ["d", "d", 0],
      ["e", null, 1],
      ["c", "b", 1],
      ["r2", "a", 1],
    ]);
  });

  it("ends on rings, and visits each record once for thousands of branches", () => {
    const ring = storedRecords([
      user("a", { id: "a", parentId: "b" }),
      user("b", { id: "b", parentId: "a" }),
      user("c", { id: "c", parentId: "b" }),
    ]);
    expect(listBranches(ring, "c").map(({ headId }) => headId)).toEqual(["c"]);
    const stem = Array.from({ length: 5000 }, (_, index) =>
      user("s", { id: `s${index}`, parentId: index === 0 ? null : `s${index - 1}` }),
    );
    const leaves = Array.from({ length: 5000 }, (_, index) => user("l", { id: `l${index}`, parentId: "s4999" }));
    const branches = listBranches(
      storedRecords([user("r", { id: "root", parentId: null }), ...stem, ...leaves]),
      "root",
    );
    expect(branches).toHaveLength(5001);
    expect(branches[1]).toMatchObject({ headId: "l4999", forkId: null, ownRecords: 5001 });
  });
});

describe("contextFromSeq", () => {
  it("is the first record a compaction keeps, wherever the head goes", () => {
    const log = storedRecords([user("one"), said("a"), user("two"), compaction("r3"), said("b"), user("three")]);
    expect(contextFromSeq(log, "r6")).toBe(3);
    expect(contextFromSeq(log, "r3")).toBe(1);
    expect(planRewind(log, "r6", "r2").options.windowFromSeq).toBe(1);
    expect(planRewind(log.slice(2), "r6", "r5").options.windowFromSeq).toBe(3);
    expect(contextFromSeq(log.slice(3), "r6")).toBe(1);
  });
});
