import { findRecordProblem } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { header, jsonLines, message, readTranscript } from "./read-transcript.ts";

const iso = "2025-01-01T00:00:01.500Z";
const isoMs = Date.parse(iso);

describe("version 1", () => {
  const v1 = {
    type: "session",
    id: "s1",
    timestamp: iso,
    cwd: "/work",
    provider: "anthropic",
    modelId: "m",
    thinkingLevel: "off",
  };
  const row = (text: string): unknown => ({
    type: "message",
    timestamp: iso,
    message: { role: "user", content: text },
  });
  const compaction = (firstKeptEntryIndex: unknown): unknown => ({
    type: "compaction",
    timestamp: iso,
    summary: "s",
    tokensBefore: 9,
    firstKeptEntryIndex,
  });

  it("gets ids by place and parents by order, once said", () => {
    const { lines, found } = readTranscript(jsonLines(v1, row("1"), row("2"), row("3")));
    expect(lines.slice(1).map(({ record }) => [record.id, record.parentId])).toEqual([
      ["00000001", null],
      ["00000002", "00000001"],
      ["00000003", "00000002"],
    ]);
    expect(found).toEqual(["VERSION_MIGRATED@1"]);
  });

  it("the index of the first kept record counts lines, the header and unreadable ones among them", () => {
    const { lines } = readTranscript(jsonLines(v1, row("1"), "{broken", row("3"), row("4"), compaction(3), row("6")));
    expect(lines[5]?.record).toEqual({
      type: "compaction",
      id: "00000005",
      parentId: "00000004",
      timestamp: iso,
      summary: "s",
      tokensBefore: 9,
      firstKeptEntryId: "00000003",
    });
  });

  it("an index that names no record means the next one; one that names none before it keeps nothing", () => {
    const kept = (index: unknown): unknown =>
      readTranscript(jsonLines(v1, row("1"), "{broken", row("3"), compaction(index), row("5"))).lines[4]?.record[
        "firstKeptEntryId"
      ];
    expect([0, 1, 2, 3, 1.9].map(kept)).toEqual(["00000001", "00000001", "00000003", "00000003", "00000001"]);
    expect([4, 5, 99, -1, "1", null].map(kept)).toEqual(Array(6).fill("00000004"));
    const { found } = readTranscript(jsonLines(v1, row("1"), compaction(99)));
    expect(found).toEqual(["VERSION_MIGRATED@1", "COMPACTION_DANGLING@3"]);
  });

  it("mixes with records that have ids, and ids made by place never take theirs", () => {
    const { lines } = readTranscript(
      jsonLines(v1, row("1"), message("00000001", null, "own"), row("3"), message("x", "00000001", "child")),
    );
    expect(lines.slice(1).map(({ record }) => [record.id, record.parentId])).toEqual([
      ["00000001", null],
      ["00000001~2", null],
      ["00000003", "00000001~2"],
      ["x", "00000001~2"],
    ]);
  });
});

describe("version 2", () => {
  it("renames hook messages and names their type", () => {
    const hook = (extra: object): unknown => ({
      type: "message",
      id: `h${JSON.stringify(extra).length}`,
      parentId: null,
      timestamp: iso,
      message: { role: "hookMessage", content: "x", ...extra },
    });
    const { lines } = readTranscript(jsonLines({ ...header, version: 2 }, hook({}), hook({ customType: "mine" })));
    expect(lines.slice(1).map(({ record }) => record["message"])).toEqual([
      { role: "custom", content: "x", customType: "hook" },
      { role: "custom", content: "x", customType: "mine" },
    ]);
    expect(lines.slice(1).map((line) => line.isSourceCanonical)).toEqual([false, false]);
  });
});

describe("flat records", () => {
  const messages = (...values: readonly unknown[]): unknown[] => {
    const { lines } = readTranscript(jsonLines(...values));
    for (const { record } of lines) expect(findRecordProblem(record)).toBe(null);
    return lines.filter(({ record }) => record.type === "message").map(({ record }) => record["message"]);
  };

  it("of the first tutorial: no header, seconds, blocks [C07]", () => {
    const { lines, found } = readTranscript(
      jsonLines(
        { type: "user", content: "Hello", ts: 1735689601.5 },
        {
          type: "assistant",
          content: [
            { type: "text", text: "Hi!" },
            { type: "tool_use", id: "t1", name: "read_file", input: { path: "x" } },
          ],
          ts: 1735689601.5,
        },
        { type: "tool_use", tool_use_id: "t1", name: "read_file", input: { path: "x" }, ts: 1735689601.5 },
        { type: "tool_result", tool_use_id: "t1", content: "file contents", ts: 1735689601.5 },
      ),
    );
    expect(found).toEqual(["RECORD_FLAT@1"]);
    expect(lines.map(({ record }) => record.timestamp)).toEqual([iso, iso, iso, iso]);
    expect(lines.map(({ record }) => record["message"])).toEqual([
      { role: "user", content: "Hello", timestamp: isoMs },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Hi!" },
          { type: "toolCall", id: "t1", name: "read_file", arguments: { path: "x" } },
        ],
        timestamp: isoMs,
      },
      {
        role: "assistant",
        content: [{ type: "toolCall", id: "t1", name: "read_file", arguments: { path: "x" } }],
        timestamp: isoMs,
      },
      {
        role: "toolResult",
        toolCallId: "t1",
        toolName: "read_file",
        content: "file contents",
        isError: false,
        timestamp: isoMs,
      },
    ]);
  });

  it("of the second: header with key, ISO times, text content, output [C08] [C11]", () => {
    const { lines, reader } = readTranscript(
      jsonLines(
        { type: "session", id: "abc123", key: "main:cli:user", created: iso },
        { type: "user", content: "hello", ts: iso },
        { type: "assistant", content: "Hi there!", ts: iso },
        { type: "tool_use", name: "read_file", tool_use_id: "t", input: { path: "c" }, ts: iso },
        { type: "tool_result", tool_use_id: "t", output: '{"key": "value"}', ts: iso },
      ),
    );
    expect(reader.header).toMatchObject({ sessionId: "abc123", key: "main:cli:user", version: 1, timestamp: iso });
    expect(lines.slice(1).map(({ record }) => (record["message"] as { content: unknown }).content)).toEqual([
      "hello",
      [{ type: "text", text: "Hi there!" }],
      [{ type: "toolCall", id: "t", name: "read_file", arguments: { path: "c" } }],
      '{"key": "value"}',
    ]);
    expect(reader.headId).toBe("00000004");
  });

  it("under a version 3 header, with a provider's fields and mixed with wrapped ones [C07]", () => {
    const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 };
    const { lines, found } = readTranscript(
      jsonLines(
        header,
        {
          type: "user",
          content: [
            { type: "text", text: "Hello" },
            { type: "image", source: { type: "base64", data: "x" } },
          ],
          timestamp: 1234567890,
        },
        {
          type: "assistant",
          content: [{ type: "thinking", thinking: "t", signature: "s" }],
          api: "a",
          provider: "p",
          model: "m",
          usage,
          stopReason: "stop",
          timestamp: isoMs,
        },
        message("w", "00000002", "wrapped"),
        { role: "user", content: "no type at all", timestamp: isoMs },
      ),
    );
    expect(found).toEqual(["RECORD_FLAT@2"]);
    expect(lines.slice(1).map(({ record }) => record.parentId)).toEqual([null, "00000001", "00000002", "w"]);
    expect(lines[1]?.record["message"]).toMatchObject({
      content: [{ type: "text" }, { type: "image", source: { type: "base64" } }],
      timestamp: 1234567890000,
    });
    expect(lines[2]?.record["message"]).toEqual({
      role: "assistant",
      content: [{ type: "thinking", thinking: "t", thinkingSignature: "s" }],
      api: "a",
      provider: "p",
      model: "m",
      usage,
      stopReason: "stop",
      timestamp: isoMs,
    });
    expect(lines[4]?.record["message"]).toEqual({ role: "user", content: "no type at all", timestamp: isoMs });
  });

  it.each([
    [1735689601.5, iso],
    [isoMs, iso],
    [iso, iso],
    ["2025-01-01T01:00:01.5+01:00", iso],
    [99_999_999_999, "5138-11-16T09:46:39.000Z"],
    [100_000_000_000, "1973-03-03T09:46:40.000Z"],
    [0, "1970-01-01T00:00:00.000Z"],
  ])("time %j is %s [C09]", (ts, expected) => {
    expect(readTranscript(jsonLines({ type: "user", content: "x", ts })).lines[0]?.record.timestamp).toBe(expected);
  });

  it.each([[undefined], ["..."], [null], [Number.MAX_VALUE], [{}]])(
    "a time that is none (%j) takes that of the line before",
    (ts) => {
      const { lines } = readTranscript(
        jsonLines({ type: "user", content: "x", ts: iso }, { type: "user", content: "y", ts }),
      );
      expect(lines[1]?.record.timestamp).toBe(iso);
    },
  );

  it("content wins over a different output, which is kept beside it [C08]", () => {
    const { lines, found } = readTranscript(
      jsonLines({ type: "tool_result", tool_use_id: "t", content: "c", output: "o", is_error: true }),
    );
    expect(lines[0]?.record["message"]).toEqual({
      role: "toolResult",
      toolCallId: "t",
      content: "c",
      details: { output: "o" },
      isError: true,
    });
    expect(found).toEqual(["RECORD_FLAT@1", "RECORD_INVALID@1"]);
    expect(
      readTranscript(jsonLines({ type: "tool_result", tool_use_id: "t", content: "c", output: "c" })).found,
    ).toEqual(["RECORD_FLAT@1"]);
  });

  it("odd values still give valid messages", () => {
    const contents = messages(
      { type: "user" },
      { type: "user", content: { a: 1 } },
      { type: "user", content: ["text", 5, { no: "type" }] },
      { type: "assistant", content: null },
      { type: "assistant", content: "" },
      { type: "assistant", content: [{ type: "redacted_thinking", data: "d" }] },
      { type: "tool_use" },
      { type: "tool_use", tool_use_id: 5, name: "n", input: "text" },
      { type: "tool_result", output: { a: 1 } },
      { type: "tool_result", tool_use_id: null, content: [{ type: "text", text: "x" }] },
    ).map((value) => (value as { content: unknown }).content);
    expect(contents).toEqual([
      "",
      '{"a":1}',
      [
        { type: "text", text: "text" },
        { type: "unknown", value: 5 },
        { no: "type", type: "unknown" },
      ],
      [],
      [],
      [{ type: "thinking", thinking: "", thinkingSignature: "d", redacted: true }],
      [{ type: "toolCall", id: "", name: "", arguments: {} }],
      [{ type: "toolCall", id: "5", name: "n", arguments: { input: "text" } }],
      '{"a":1}',
      [{ type: "text", text: "x" }],
    ]);
  });
});
