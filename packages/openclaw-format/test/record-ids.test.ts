import { defaultStoreLimits as limits, prepareDrafts, systemClock, systemRecordIds } from "@throughline/core/internal";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { header, jsonLines, message, readTranscript } from "./read-transcript.ts";

describe("ids and parents", () => {
  it("renames a later bearer of an id; what follows means the nearest one before it", () => {
    const text = jsonLines(
      header,
      message("g", null, "1"),
      message("g", "g", "2"),
      message("h", "g", "3"),
      message("g", "h", "4"),
      message("i", "g", "5"),
    );
    const { lines, found } = readTranscript(text);
    expect(lines.slice(1).map(({ record }) => [record.id, record.parentId])).toEqual([
      ["g", null],
      ["g~2", "g"],
      ["h", "g~2"],
      ["g~3", "h"],
      ["i", "g~3"],
    ]);
    expect(lines.map((line) => line.isSourceCanonical)).toEqual([false, true, false, false, false, false]);
    expect(found).toEqual(["DUPLICATE_ID@3", "DUPLICATE_ID@5"]);
  });

  it("every other field that names a record means the nearest one too", () => {
    const at = { parentId: "h", timestamp: "2026-02-01T16:10:52.000Z" };
    const compaction = { type: "compaction", id: "c", ...at, summary: "s", firstKeptEntryId: "g", tokensBefore: 1 };
    const label = { type: "label", id: "l", ...at, targetId: "g", label: "x" };
    const { lines } = readTranscript(
      jsonLines(header, message("g", null, "1"), message("g", "g", "2"), message("h", "g", "3"), compaction, label),
    );
    expect(lines[4]?.record).toEqual({ ...compaction, firstKeptEntryId: "g~2" });
    expect(lines[5]?.record).toEqual({ ...label, targetId: "g~2" });
  });

  it("finds another name when the new one is taken too, and for ids of the longest kind", () => {
    const long = "x".repeat(256);
    const ids = ["g", "g~2", "g", "g~2", long, long];
    const { lines } = readTranscript(jsonLines(header, ...ids.map((id) => message(id, null, "x"))));
    const given = lines.slice(1).map(({ record }) => record.id);
    expect(new Set(given).size).toBe(ids.length);
    expect(given.slice(0, 3)).toEqual(["g", "g~2", "g~3"]);
    expect(Math.max(...given.map((id) => id.length))).toBe(256);
  });

  it("attaches a record that names itself, or nobody, to the one before it", () => {
    const noParent = { ...message("c", null, "3"), parentId: undefined };
    const { lines, found } = readTranscript(
      jsonLines(header, message("a", null, "1"), message("b", "b", "2"), noParent, {
        ...message("d", null, "4"),
        parentId: 7,
      }),
    );
    expect(lines.slice(1).map(({ record }) => record.parentId)).toEqual([null, "a", "b", "c"]);
    expect(found).toEqual(["SELF_PARENT@3", "PARENT_MISSING@4", "PARENT_MISSING@5"]);
  });

  it("leaves an orphan's parent as it is and says so; a parent that comes later is none", () => {
    const { lines, found } = readTranscript(
      jsonLines(header, message("a", "later", "1"), message("b", "zzz", "2"), message("later", null, "3")),
    );
    expect(lines.slice(1).map(({ record, isSourceCanonical }) => [record.parentId, isSourceCanonical])).toEqual([
      ["later", true],
      ["zzz", true],
      [null, true],
    ]);
    expect(found).toEqual(["ORPHAN_PARENT@3"]);
  });

  it("leaves a cycle to the walk", () => {
    const { found } = readTranscript(jsonLines(header, message("a", "b", "1"), message("b", "a", "2")));
    expect(found).toEqual([]);
  });

  it.each([[""], ["a\u0007b"], ["a\ud800"], ["y".repeat(257)], [5], [{}]])(
    "replaces an id that no record may have: %j",
    (id) => {
      const { lines, found } = readTranscript(jsonLines(header, { ...message("a", null, "1"), id }));
      expect(lines[1]?.record.id).toBe("00000001");
      expect(found).toEqual(["RECORD_INVALID@2"]);
    },
  );

  it("knows what is meant by an id that no record may have", () => {
    const { lines, found } = readTranscript(
      jsonLines(header, message("\ud800", null, "1"), message("b", null, "2"), message("c", "\ud800", "3")),
    );
    expect(lines[3]?.record.parentId).toBe("00000001");
    expect(found).toEqual(["RECORD_INVALID@2"]);
  });

  it("cuts no character of an id in two", () => {
    const id = `${"x".repeat(239)}\u{1f600}${"x".repeat(10)}`;
    const { lines } = readTranscript(jsonLines(header, message(id, null, "1"), message(id, null, "2")));
    expect(lines[2]?.record.id).toBe(`${"x".repeat(239)}~2`);
  });

  it.each([[""], ["a\u001b[1m"], ["a\udfff"], ["y".repeat(129)], [5]])(
    "reads nothing of a type that no record may have: %j",
    (type) => {
      const { lines, found } = readTranscript(jsonLines(header, { ...message("a", null, "1"), type }));
      expect(lines[1]?.unparsed).toBe("no-type");
      expect(found).toEqual(["RECORD_INVALID@2"]);
    },
  );
});

describe("any bytes", () => {
  it(
    "every line gives one record with a unique id, the same in every run, and of a prefix the same records",
    { tags: ["slow"] },
    () => {
      const id = fc.constantFrom("a", "b", "a~2", "00000001", "", "\ud800", "\u0007", 5, undefined);
      const row = fc.oneof(
        fc
          .record({
            type: fc.constantFrom(
              "message",
              "session",
              "user",
              "leaf",
              "tool_use",
              "compaction",
              "x",
              "x\u001b",
              "\udc00",
            ),
            id,
            parentId: fc.constantFrom(null, "a", "b", "zzz", "\ud800", undefined),
            content: fc.constantFrom("t", undefined),
            targetId: fc.constantFrom("a", "b", null, undefined),
            firstKeptEntryIndex: fc.constantFrom(0, 2, 99, undefined),
          })
          .map((value) => JSON.stringify(value)),
        fc.constantFrom("", "{", "null", "[1]", "\0\0", '{"a":1}', "\uFEFF{}"),
        fc.string(),
      );
      fc.assert(
        fc.property(fc.array(row, { maxLength: 12 }), fc.nat(12), (rows, cut) => {
          const text = rows.map((line) => `${line.replaceAll("\n", "")}\n`).join("");
          const { lines } = readTranscript(text);
          expect(lines.length).toBe(rows.length);
          expect(new Set(lines.map(({ record }) => record.id)).size).toBe(lines.length);
          for (const { record } of lines) expect(record.parentId).not.toBe(record.id);
          expect(readTranscript(text).lines).toEqual(lines);
          // Every store takes what is read, so that no line keeps its session from an import or a copy.
          const drafts = lines.map(({ source, record }) => ({ source, record }));
          expect(prepareDrafts(drafts, { ids: systemRecordIds, clock: systemClock, limits }).length).toBe(lines.length);
          const prefix = text
            .split("\n")
            .slice(0, cut)
            .map((line) => `${line}\n`)
            .join("");
          expect(readTranscript(prefix.slice(0, text.length)).lines).toEqual(lines.slice(0, cut));
        }),
        { numRuns: 500 },
      );
    },
  );
});
