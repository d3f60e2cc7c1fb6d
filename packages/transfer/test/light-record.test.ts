import { describe, expect, it } from "vitest";
import type { SessionRecord, StoredRecord } from "@throughline/core";
import { inspectRecords } from "../src/findings/inspect-records.ts";
import { lightRecord } from "../src/findings/light-record.ts";

const timestamp = "2026-01-01T00:00:01.000Z";
const long = "long words ".repeat(1000);

function record(id: string, parentId: string | null, fields: object): SessionRecord {
  return { type: "message", id, parentId, timestamp, ...fields };
}

function light(given: SessionRecord): SessionRecord {
  return lightRecord(given, JSON.stringify(given).length);
}

describe("a record that is kept to be looked at", () => {
  it("has its texts cut, and all else as it was", () => {
    const longId = `id-${"x".repeat(3000)}`;
    const call = { type: "toolCall", id: longId, name: "write", arguments: { path: "a", body: long, list: [long] } };
    const image = { type: "image", data: "QUJD".repeat(2000), mimeType: "image/png" };
    const given = record("r", longId, {
      message: { role: "assistant", content: [{ type: "text", text: long }, call, image], provider: "p" },
    });
    const before = structuredClone(given);
    const kept = light(given);
    expect(given).toEqual(before);
    expect(JSON.stringify(kept).length).toBeLessThan(2 * longId.length + 1500);
    const content = (kept["message"] as { content: Record<string, unknown>[] }).content;
    expect(kept).toMatchObject({ id: "r", parentId: longId, timestamp });
    expect(content[1]).toMatchObject({ id: longId, name: "write", arguments: { path: "a" } });
    expect(content[2]).toMatchObject({ data: "QUJD".repeat(16), mimeType: "image/png" });
    expect(Object.keys(content[1]?.["arguments"] as object)).toEqual(["path", "body", "list"]);
  });

  it("says as much or as little as before, and differs from whatever it differed from", () => {
    const said = (text: string): unknown => light(record("r", null, { message: { role: "user", content: text } }));
    const blank = " ".repeat(5000);
    expect(said(blank)).toMatchObject({ message: { content: blank } });
    expect(said(`${blank}x`)).toMatchObject({ message: { content: `${blank}x` } });
    expect(said(`${long}one`)).not.toEqual(said(`${long}two`));
    expect(said(`${long}one`)).toEqual(said(`${long}one`));
  });

  it("may have fields of any name", () => {
    const given = JSON.parse(
      `{"type":"message","id":"r","parentId":null,"timestamp":"${timestamp}","__proto__":{"text":"${long}"}}`,
    ) as SessionRecord;
    expect(Object.keys(light(given))).toEqual(["type", "id", "parentId", "timestamp", "__proto__"]);
    expect(Object.getPrototypeOf(light(given))).toBe(Object.prototype);
  });
});

describe("what is odd about a session", () => {
  const header = { type: "session", version: 3, id: "s1", timestamp, cwd: "/" };
  const said = (id: string, parentId: string | null, message: object): SessionRecord =>
    record(id, parentId, { message });
  const odd = (text: string): readonly object[] => [
    header,
    said("a", null, { role: "user", content: text }),
    said("b", "a", {
      role: "assistant",
      content: [
        { type: "thinking", thinking: text, thinkingSignature: "sig" },
        { type: "text", text },
        { type: "mystery", text },
        { type: "toolCall", id: "c1", name: "read", arguments: { text } },
        { type: "toolCall", id: "c2", name: "read", arguments: { text } },
      ],
      stopReason: "toolUse",
    }),
    said("c", "b", {
      role: "toolResult",
      toolCallId: "c1",
      toolName: "read",
      content: [{ type: "text", text }],
      isError: false,
    }),
    said("d", "c", {
      role: "toolResult",
      toolCallId: "c1",
      toolName: "read",
      content: [{ type: "text", text }],
      isError: false,
    }),
    said("e", "gone", { role: "user", content: [{ type: "text", text }] }),
    said("f", "e", { role: "strange", content: text }),
    {
      type: "compaction",
      id: "g",
      parentId: "f",
      timestamp,
      summary: text,
      firstKeptEntryId: "nowhere",
      tokensBefore: 1,
    },
    said("h", "g", { role: "user", content: [{ text }] }),
    { type: "mystery", id: "i", parentId: "h", timestamp, text },
  ];
  const found = (lines: readonly object[], isLight: boolean): readonly unknown[] => {
    const records = lines.map((line, index): StoredRecord => {
      const given = line as SessionRecord;
      const { id, parentId = null, type } = given;
      const bytes = JSON.stringify(given).length;
      const facts = { seq: index + 1, id, parentId, type, side: type === "session", tsMs: 0, storedAtMs: null, bytes };
      return { ...facts, crc: null, record: isLight ? lightRecord(given, bytes) : given };
    });
    return inspectRecords(records, "i");
  };

  it.each(["a short text", long])("is found in records with their texts cut, too", (text) => {
    const whole = found(odd(text), false);
    expect(whole.length).toBeGreaterThan(3);
    expect(found(odd(text), true)).toEqual(whole);
  });
});
