import fc from "fast-check";
import { findRecordProblem } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { attachEnvelope, createTranscriptReader } from "@throughline/openclaw-format";
import { header, jsonLines, message, readTranscript } from "./read-transcript.ts";

describe("records of version 3", () => {
  const rows = [
    message("a", null, "hi"),
    {
      type: "thinking_level_change",
      id: "b",
      parentId: "a",
      timestamp: "2026-02-01T16:10:52.000Z",
      thinkingLevel: "high",
    },
    {
      type: "model_change",
      id: "c",
      parentId: "b",
      timestamp: "2026-02-01T16:10:52.000Z",
      provider: "anthropic",
      modelId: "m",
    },
    {
      type: "compaction",
      id: "d",
      parentId: "c",
      timestamp: "2026-02-01T16:10:52.000Z",
      summary: "s",
      firstKeptEntryId: "a",
      tokensBefore: 1,
      fromCheckpoint: "e",
    },
    {
      type: "checkpoint",
      id: "e",
      parentId: "d",
      timestamp: "2026-02-01T16:10:52.000Z",
      checkpoint: { summary: "s", tokensAtCheckpoint: 5, messageCountAtCheckpoint: 2 },
    },
    {
      type: "branch_summary",
      id: "f",
      parentId: "d",
      timestamp: "2026-02-01T16:10:52.000Z",
      fromId: "a",
      summary: "b",
    },
    { type: "custom", id: "g", parentId: "f", timestamp: "2026-02-01T16:10:52.000Z", customType: "x", data: { n: 1 } },
    {
      type: "custom_message",
      id: "h",
      parentId: "g",
      timestamp: "2026-02-01T16:10:52.000Z",
      customType: "x",
      content: "c",
      display: true,
    },
    { type: "label", id: "i", parentId: "h", timestamp: "2026-02-01T16:10:52.000Z", targetId: "a", label: "l" },
    { type: "session_info", id: "j", parentId: "i", timestamp: "2026-02-01T16:10:52.000Z", name: "n" },
    {
      type: "usage",
      id: "k",
      parentId: "h",
      timestamp: "2026-02-01T16:10:52.000Z",
      kind: "summary",
      usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 },
    },
    {
      type: "context_edit",
      id: "l",
      parentId: "h",
      timestamp: "2026-02-01T16:10:52.000Z",
      targetId: "a",
      replacement: null,
    },
    { type: "leaf", id: "m", parentId: "l", timestamp: "2026-02-01T16:10:52.000Z", targetId: "h" },
    { type: "reset", id: "n", parentId: "h", timestamp: "2026-02-01T16:10:52.000Z", reason: "new" },
    { type: "from_the_future", id: "o", parentId: "n", timestamp: "2026-02-01T16:10:52.000Z", anything: [1] },
  ];

  it("takes every type as it is, unknown ones too [REC-12] [REC-14] [REC-15] [REC-16] [REC-17]", () => {
    const { lines, found } = readTranscript(jsonLines(header, ...rows));
    expect(lines.slice(1).map(({ record }) => record)).toEqual(rows);
    expect(lines.slice(1).every((line) => line.isSourceCanonical)).toBe(true);
    expect(lines.map(({ record }) => findRecordProblem(record))).toEqual(lines.map(() => null));
    expect(found).toEqual([]);
  });

  it("moves the head by main records and leaf rows only", () => {
    const { lines } = readTranscript(jsonLines(header, ...rows));
    expect(lines.map(({ headId }) => headId)).toEqual([
      null,
      "a",
      "b",
      "c",
      "d",
      "d",
      "f",
      "g",
      "h",
      "h",
      "h",
      "h",
      "l",
      "h",
      "n",
      "o",
    ]);
    const toRoot = readTranscript(
      jsonLines(header, message("a", null, "x"), {
        type: "leaf",
        id: "b",
        parentId: "a",
        timestamp: "t",
        targetId: null,
      }),
    );
    expect(toRoot.reader.headId).toBe(null);
    const nowhere = readTranscript(
      jsonLines(header, message("a", null, "x"), {
        type: "leaf",
        id: "b",
        parentId: "a",
        timestamp: "t",
        targetId: "zzz",
      }),
    );
    expect(nowhere.reader.headId).toBe("a");
  });

  it("keeps the exact line as the source: numbers, escapes, double keys, spaces", () => {
    const line =
      '{"type":"custom","id":"a","parentId":null,"timestamp":"t","customType":"x","data":[1.0,1e3,-0,9007199254740993,"\\u00e9","\\ud800"],"x":1,"x":2} ';
    const { lines } = readTranscript(`${JSON.stringify(header)}\n${line}\n`);
    expect(lines[1]?.source).toBe(line);
    expect(lines[1]?.isSourceCanonical).toBe(true);
    expect(lines[1]?.record).toEqual(JSON.parse(line));
  });

  it("keeps a __proto__ field as a field", () => {
    const { lines } = readTranscript(
      `${JSON.stringify(header)}\n{"type":"custom","id":"a","timestamp":"t","customType":"x","__proto__":{"polluted":true}}\n`,
    );
    const record = lines[1]?.record ?? {};
    expect(Object.hasOwn(record, "__proto__")).toBe(true);
    expect((record as { polluted?: unknown }).polluted).toBe(undefined);
  });
});

describe("headers", () => {
  it("are side records with an id of their own [REC-09] [REC-10]", () => {
    const { lines, reader, found } = readTranscript(
      jsonLines({ ...header, key: "agent:main:main", parentSession: "/p" }, message("a", null, "x")),
    );
    expect(lines[0]).toMatchObject({ isHeader: true, side: true, isSourceCanonical: false, headId: null });
    expect(lines[0]?.record).toEqual({
      ...header,
      id: "header:s1",
      parentId: null,
      sessionId: "s1",
      key: "agent:main:main",
      parentSession: "/p",
    });
    expect(reader.header).toMatchObject({
      sessionId: "s1",
      version: 3,
      cwd: "/work",
      key: "agent:main:main",
      parentSession: "/p",
      line: 1,
    });
    expect(found).toEqual([]);
  });

  it("may be missing [C10]", () => {
    const { lines, reader, found } = readTranscript(jsonLines(message("a", null, "x"), message("b", "a", "y")));
    expect(reader.header).toBe(null);
    expect(lines.map(({ isSourceCanonical, headId }) => [isSourceCanonical, headId])).toEqual([
      [true, "a"],
      [true, "b"],
    ]);
    expect(found).toEqual(["HEADER_MISSING@1"]);
  });

  it.each([
    [{ ...header, id: undefined }, "header:unknown", 3],
    [{ ...header, id: 7 }, "header:unknown", 3],
    [{ ...header, id: "line\nfeed" }, "header:unknown", 3],
    [{ ...header, version: "three" }, "header:s1", 1],
    [{ ...header, version: 5 }, "header:s1", 5],
  ])("may be invalid: %j", (given, id, version) => {
    const { lines, reader, found } = readTranscript(jsonLines(given, message("a", null, "x")));
    expect(lines[0]?.record.id).toBe(id);
    expect(reader.header?.version).toBe(version);
    expect(lines[1]?.record.id).toBe("a");
    expect(found.filter((code) => code.startsWith("HEADER_INVALID"))).toEqual(
      id === "header:unknown" && typeof given.id === "string" ? [] : ["HEADER_INVALID@1"],
    );
  });

  it("may contradict the file name, or come twice", () => {
    const { lines, found } = readTranscript(
      jsonLines(header, message("a", null, "x"), header, message("b", "a", "y")),
      { sessionId: "other" },
    );
    expect(found).toEqual(["HEADER_MISMATCH@1", "HEADER_INVALID@3"]);
    expect(lines.map(({ record }) => record.id)).toEqual(["header:s1", "a", "header:s1~2", "b"]);
    expect(lines.map(({ isHeader }) => isHeader)).toEqual([true, false, false, false]);
    expect(lines[3]?.headId).toBe("b");
  });

  it("of version 4 changes nothing else", () => {
    expect(readTranscript(jsonLines({ ...header, version: 4 }, message("a", null, "x"))).found).toEqual([]);
  });
});

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

  it.each([[""], ["a\u0007b"], ["y".repeat(257)], [5], [{}]])("replaces an id that no record may have: %j", (id) => {
    const { lines, found } = readTranscript(jsonLines(header, { ...message("a", null, "1"), id }));
    expect(lines[1]?.record.id).toBe("00000001");
    expect(found).toEqual(["RECORD_INVALID@2"]);
  });
});

describe("lines of our own", () => {
  it("give the record, its envelope and the origin they carry", () => {
    const own = (value: unknown, envelope: Parameters<typeof attachEnvelope>[1]): string =>
      attachEnvelope(JSON.stringify(value), envelope);
    const imported = { ...header, id: "header:s1", parentId: null, sessionId: "s1" };
    const { lines, found } = readTranscript(
      jsonLines(
        own({ ...header, key: "agent:main:main" }, { seq: 0 }),
        own(imported, { seq: 1, source: JSON.stringify(header) }),
        own(message("a", null, "hi"), { seq: 2, crc: 1, entry: { label: "x" } }),
        own(message("b", "a", "?"), { seq: 3, sourceBase64: Buffer.from([0xff, 0x7b]).toString("base64") }),
        message("c", "b", "by another program"),
      ),
    );
    expect(found).toEqual([]);
    expect(lines.map(({ envelope }) => envelope?.seq ?? null)).toEqual([0, 1, 2, 3, null]);
    expect(lines.map(({ isHeader }) => isHeader)).toEqual([true, false, false, false, false]);
    expect(lines[1]).toMatchObject({ record: imported, source: JSON.stringify(header), isSourceCanonical: false });
    expect(lines[2]).toMatchObject({ source: JSON.stringify(message("a", null, "hi")), isSourceCanonical: true });
    expect(lines[3]?.source).toEqual(Uint8Array.from([0xff, 0x7b]));
    expect(lines[4]?.headId).toBe("c");
  });

  it("may be an imported header with its seq, and say where a rewind put the head", () => {
    const { lines, found } = readTranscript(
      jsonLines(
        attachEnvelope(JSON.stringify(header), { seq: 1 }),
        attachEnvelope(JSON.stringify(message("a", null, "1")), { seq: 2 }),
        attachEnvelope(JSON.stringify(message("b", "a", "2")), { seq: 3, batch: [1, 2], head: "a" }),
        attachEnvelope(JSON.stringify(message("c", "b", "3")), { seq: 4, batch: [2, 2], head: "a" }),
      ),
    );
    expect(found).toEqual([]);
    expect(lines[0]).toMatchObject({
      isHeader: true,
      isSourceCanonical: false,
      record: { id: "header:s1" },
      source: JSON.stringify(header),
    });
    expect(lines.map(({ headId }) => headId)).toEqual([null, "a", "b", "a"]);
  });

  it("may come without their envelope when a store took it off", () => {
    const reader = createTranscriptReader();
    const line = reader.push(JSON.stringify(message("a", null, "x")), { line: 1, byteOffset: 0, envelope: { seq: 9 } });
    expect(line.envelope).toEqual({ seq: 9 });
  });
});

describe("any bytes", () => {
  it("every line gives one record with a unique id, the same in every run, and of a prefix the same records", () => {
    const id = fc.constantFrom("a", "b", "a~2", "00000001", "", 5, undefined);
    const row = fc.oneof(
      fc
        .record({
          type: fc.constantFrom("message", "session", "user", "leaf", "tool_use", "compaction", "x"),
          id,
          parentId: fc.constantFrom(null, "a", "b", "zzz", undefined),
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
        const prefix = text
          .split("\n")
          .slice(0, cut)
          .map((line) => `${line}\n`)
          .join("");
        expect(readTranscript(prefix.slice(0, text.length)).lines).toEqual(lines.slice(0, cut));
      }),
      { numRuns: 500 },
    );
  });
});
