import { findRecordProblem } from "@throughline/core/internal";
import { attachEnvelope } from "../src/line-envelope.ts";
import { describe, expect, it } from "vitest";
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

  it("takes every type as it is, unknown ones too", () => {
    const { lines, found } = readTranscript(jsonLines(header, ...rows));
    expect(lines.slice(1).map(({ record }) => record)).toEqual(rows);
    expect(lines.slice(1).every((line) => line.isSourceCanonical)).toBe(true);
    expect(lines.map(({ record }) => findRecordProblem(record))).toEqual(lines.map(() => null));
    expect(found).toEqual([]);
  });

  it("finds the head where a program without leaf rows left it, by the last row of a label, a name or a cost", () => {
    const at = { timestamp: "2026-02-01T16:10:52.000Z" };
    const rows = [
      message("a", null, "1"),
      message("b", "a", "2"),
      { type: "label", id: "l", parentId: "b", ...at, targetId: "a", label: "x" },
      message("c", "l", "3"),
      { type: "session_info", id: "s", parentId: "l", ...at, name: "n" },
      { type: "label", id: "t", parentId: "s", ...at, targetId: "a" },
      message("d", "t", "4"),
      { type: "usage", id: "u", parentId: "a", ...at, kind: "summary", usage: {} },
      { type: "label", id: "v", parentId: "c", ...at, targetId: "a", appendMode: "side" },
      { type: "label", id: "w", parentId: "nowhere", ...at, targetId: "a" },
      { type: "session_info", id: "x", parentId: null, ...at, name: "m" },
    ];
    const { lines } = readTranscript(jsonLines(header, ...rows));
    expect(lines.slice(1).map(({ headId }) => headId)).toEqual([..."abbcbbdaaaa"]);
    expect(lines.slice(1).map(({ setsHead }) => setsHead)).toEqual([..."..l.sl.u..."].map((each) => each !== "."));
  });

  it("leaves the head where it is for a side record of ours, wherever that hangs", () => {
    const label = {
      type: "label",
      id: "l",
      parentId: "a",
      timestamp: "2026-02-01T16:10:52.000Z",
      targetId: "a",
      label: "x",
    };
    const ours = attachEnvelope(JSON.stringify(label), { seq: 3 });
    const { reader } = readTranscript(jsonLines(header, message("a", null, "1"), message("b", "a", "2"), ours));
    expect(reader.headId).toBe("b");
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

  it("takes messages of every role and shape as they are", () => {
    const usage = {
      input: 1000,
      output: 500,
      cacheRead: 200,
      cacheWrite: 100,
      totalTokens: 1500,
      cost: { total: 0.1 },
    };
    const call = { type: "toolCall", id: "t", name: "read", arguments: { path: "x" } };
    const images = [
      { type: "image", data: "aGk=", mimeType: "image/png" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
    ];
    const messages = [
      { role: "user", content: [{ type: "text", text: "x" }, ...images], timestamp: 1 },
      {
        role: "assistant",
        content: [{ type: "thinking", thinking: "t", thinkingSignature: "s" }, call],
        api: "a",
        provider: "p",
        model: "m",
        usage,
        stopReason: "toolUse",
      },
      { role: "toolResult", toolCallId: "t", toolName: "read", content: images, isError: false, details: { n: 1 } },
      { role: "bashExecution", command: "ls", output: "", exitCode: 0 },
      { role: "custom", customType: "x", content: "c" },
      { role: "from_the_future", anything: 1 },
    ];
    const wrapped = messages.map((value, index) => ({
      type: "message",
      id: `m${index}`,
      parentId: null,
      timestamp: "2026-02-01T16:10:50.414Z",
      message: value,
    }));
    const checkpoint = {
      summary: "s",
      tokensAtCheckpoint: 5,
      messageCountAtCheckpoint: 2,
      topics: ["a"],
      openQuestions: ["b"],
      keyDecisions: ["c"],
    };
    const marked = {
      type: "checkpoint",
      id: "06856efc",
      parentId: "m5",
      timestamp: "2026-02-01T16:10:50.414Z",
      checkpoint,
    };
    const { lines, found } = readTranscript(jsonLines(header, ...wrapped, marked));
    expect(found).toEqual([]);
    expect(lines.slice(1).map(({ record }) => record)).toEqual([...wrapped, marked]);
    expect(lines.map(({ record }) => findRecordProblem(record))).toEqual(lines.map(() => null));
    expect(lines.at(-1)).toMatchObject({ side: true, isSourceCanonical: true, headId: "m5" });
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
  it("are side records with an id of their own", () => {
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
