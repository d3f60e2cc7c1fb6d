import { createRecentBranch, danglingTailBytes } from "../src/recent-branch.ts";
import { describe, expect, it } from "vitest";

const timestamp = "2026-01-01T00:00:02.000Z";
const user = (id: string, parentId: string | null) =>
  ({ type: "message", id, parentId, timestamp, message: { role: "user", content: id } }) as const;
const answer = (id: string, parentId: string | null) =>
  ({ type: "message", id, parentId, timestamp, message: { role: "assistant", content: [] } }) as const;

describe("the newest records of a branch", () => {
  it("begin with a whole turn, and hold as many as fit", () => {
    const recent = createRecentBranch();
    recent.add(user("a", null), danglingTailBytes);
    recent.add(answer("b", "a"), 1);
    recent.add(user("c", "b"), 1);
    recent.add(answer("d", "c"), 1);
    recent.add(user("elsewhere", "a"), 1);
    recent.add(user("e", "d"), 1);
    recent.add(answer("f", "e"), 1);
    expect(recent.tailStart("f")).toBe("c");
    expect(recent.tailStart("b")).toBe("a");
  });

  it("hold the newest turn, however long it is", () => {
    const recent = createRecentBranch();
    recent.add(user("a", null), 1);
    recent.add(user("b", "a"), danglingTailBytes + 1);
    expect(recent.tailStart("b")).toBe("b");
  });

  it("end at an earlier compaction, in a ring, and where nothing is known", () => {
    const recent = createRecentBranch();
    recent.add(user("a", null), 1);
    recent.add({ type: "compaction", id: "k", parentId: "a", timestamp }, 1);
    recent.add(answer("b", "k"), 1);
    recent.add(user("r", "s"), 1);
    recent.add(answer("s", "r"), 1);
    expect([recent.tailStart("b"), recent.tailStart("s"), recent.tailStart("x"), recent.tailStart(null)]).toEqual([
      null,
      "r",
      null,
      null,
    ]);
  });
});
