import { runSteps } from "@throughline/core/internal";
import type { StoredRecord } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { messageTreeSteps } from "../src/message-tree.ts";
import { assistant, call, type RecordSketch, result, storedRecords, text, user } from "./stored-records.ts";

const said = (value: string, parentId?: string): RecordSketch =>
  assistant([text(value)], {}, parentId === undefined ? {} : { parentId });

/** The ids of the siblings of a record, and of the newest record behind it. */
function placeOf(records: readonly StoredRecord[], id: string): readonly [siblings: readonly string[], newest: string] {
  const tree = runSteps(messageTreeSteps(records));
  const { seq } = records.find((record) => record.id === id) as StoredRecord;
  return [tree.siblings(seq).map((sibling) => sibling.id), tree.newest(seq)?.id ?? ""];
}

describe("the tree of the messages of all branches", () => {
  it("groups what follows the same message, also behind records of other types", () => {
    const log = storedRecords([
      user("one"),
      said("a"),
      { type: "leaf", targetId: "r1" },
      { type: "model_change", parentId: "r1", provider: "anthropic", modelId: "other" },
      said("b"),
      user("two", { parentId: "r1" }),
      user("other", { parentId: null }),
    ]);
    expect(placeOf(log, "r1")).toEqual([["r1", "r7"], "r6"]);
    expect(placeOf(log, "r2")).toEqual([["r2", "r5", "r6"], "r2"]);
    expect(placeOf(log, "r5")).toEqual([["r2", "r5", "r6"], "r5"]);
    expect(placeOf(log, "r4")).toEqual([[], "r5"]);
  });

  it("counts no results of tools, which some programs store beside each other", () => {
    const log = storedRecords([
      user("one"),
      assistant([call("c1"), call("c2")]),
      { ...result("c1"), parentId: "r2" },
      { ...result("c2"), parentId: "r2" },
      said("done"),
      said("part", "r2"),
    ]);
    expect(placeOf(log, "r3")).toEqual([[], "r3"]);
    expect(placeOf(log, "r5")).toEqual([["r5"], "r5"]);
    expect(placeOf(log, "r6")).toEqual([["r6"], "r6"]);
  });

  it("keeps the place of a redacted message", () => {
    const data = { reason: "asked", redactedAtMs: 1, originalType: "message", originalBytes: 9, side: false };
    const log = storedRecords([
      user("one"),
      { type: "custom", customType: "throughline.redaction", data },
      said("b", "r1"),
      user("two", { parentId: "r2" }),
    ]);
    expect(placeOf(log, "r3")).toEqual([["r2", "r3"], "r3"]);
    expect(placeOf(log, "r4")).toEqual([["r4"], "r4"]);
  });

  it("ends at a cycle and at a missing parent", () => {
    const log = storedRecords([
      user("one", { id: "a", parentId: "c" }),
      said("x"),
      user("two", { id: "c" }),
      user("lost", { id: "d", parentId: "gone" }),
    ]);
    const tree = runSteps(messageTreeSteps(log));
    expect(log.map(({ seq }) => tree.siblings(seq).map(({ id }) => id))).toEqual([
      ["a", "d"],
      ["r2"],
      ["c"],
      ["a", "d"],
    ]);
    expect(log.map(({ seq }) => tree.newest(seq)?.id)).toEqual(["d", "d", "d", "d"]);
  });
});
