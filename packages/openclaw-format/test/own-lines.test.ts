import { describe, expect, it } from "vitest";
import { attachEnvelope } from "../src/line-envelope.ts";
import { createTranscriptReader } from "@throughline/openclaw-format";
import { header, jsonLines, message, readTranscript } from "./read-transcript.ts";

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
