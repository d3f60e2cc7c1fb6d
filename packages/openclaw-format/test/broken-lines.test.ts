import { describe, expect, it } from "vitest";
import { header, jsonLines, message, readTranscript } from "./read-transcript.ts";

const first = jsonLines(header, message("a", null, "hi"));
const after = jsonLines(message("b", "a", "there"));

describe("lines that are no record", () => {
  it.each([
    ["malformed", '{"broken', "LINE_MALFORMED@3"],
    ["malformed", '{"type":"message","id":"x"}}', "LINE_MALFORMED@3"],
    ["nul", "\0\0\0\0", "LINE_MALFORMED@3"],
    ["not-an-object", "[1,2]", "LINE_MALFORMED@3"],
    ["not-an-object", "null", "LINE_MALFORMED@3"],
    ["not-an-object", '"text"', "LINE_MALFORMED@3"],
    ["no-type", '{"id":"x","parentId":"a"}', "RECORD_INVALID@3"],
    ["no-type", '{"type":"","id":"x"}', "RECORD_INVALID@3"],
    ["too-deep", `{"type":"custom","data":${"[".repeat(200)}${"]".repeat(200)}}`, "LINE_MALFORMED@3"],
    ["too-deep", `{"type":"custom","data":${"[".repeat(50_000)}${"]".repeat(50_000)}}`, "LINE_MALFORMED@3"],
  ])("%s: kept in its place, the rest loads", (reason, line, code) => {
    const { lines, found } = readTranscript(`${first}${line}\n${after}`);
    expect(found).toEqual([code]);
    expect(lines[2]).toMatchObject({
      source: line,
      unparsed: reason,
      side: true,
      isSourceCanonical: false,
      headId: "a",
    });
    expect(lines[2]?.record).toMatchObject({
      type: "custom",
      customType: "throughline.unparsed",
      v: 1,
      critical: false,
      id: "00000002",
      parentId: "a",
      data: { reason },
    });
    expect(lines[3]).toMatchObject({ headId: "b", isSourceCanonical: true });
  });

  it("blank lines are kept without a finding", () => {
    const { lines, found } = readTranscript(`${first}\n  \t\r\n${after}`);
    expect(found).toEqual([]);
    expect(lines.map(({ unparsed }) => unparsed)).toEqual([null, null, "blank", "blank", null]);
    expect(lines.map(({ source }) => source).slice(2, 4)).toEqual(["", "  \t\r"]);
  });

  it("a tail that breaks off is torn, not malformed", () => {
    const { lines, found, reader } = readTranscript(`${first}{"type":"message","id":"b","pare`);
    expect(found).toEqual(["TAIL_TORN@3"]);
    expect(lines[2]?.record).toMatchObject({ data: { reason: "torn" } });
    expect(reader.findings[0]).toMatchObject({ byteOffset: Buffer.byteLength(first), severity: "warning" });
    expect(reader.headId).toBe("a");
  });

  it("a last line without a line feed is a record like others", () => {
    const { lines, found } = readTranscript(first + after.trimEnd());
    expect(found).toEqual([]);
    expect(lines[2]).toMatchObject({ headId: "b", isSourceCanonical: true });
  });

  it("an over-long line is kept and not read", () => {
    const long = JSON.stringify(message("long", "a", "x".repeat(5000)));
    const { lines, found } = readTranscript(`${first}${long}\n${after}`, { maxLineBytes: 1000 });
    expect(found).toEqual(["LINE_TOO_LONG@3"]);
    expect(lines[2]).toMatchObject({ unparsed: "too-long", headId: "a" });
    expect(lines[3]?.headId).toBe("b");
  });

  it("200 levels are read", () => {
    const { found } = readTranscript(
      `${first}{"type":"custom","id":"c","parentId":"a","timestamp":"t","customType":"x","data":${"[".repeat(199)}${"]".repeat(199)}}\n`,
    );
    expect(found).toEqual([]);
  });

  it("of garbage a bounded number is listed, the rest counted", () => {
    const { reader, lines } = readTranscript(first + "{\n".repeat(5000));
    expect(lines.length).toBe(5002);
    expect(reader.findings.length).toBe(1001);
    expect(reader.findings.at(-1)?.message).toMatch(/^4000 more/);
  });
});

describe("lines that are records all the same", () => {
  it("with a byte order mark", () => {
    const bytes = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(first)]);
    const { lines, found, reader } = readTranscript(bytes);
    expect(found).toEqual(["BYTE_ORDER_MARK@1"]);
    expect(reader.header?.sessionId).toBe("s1");
    expect(
      Buffer.from(lines[0]?.source as Uint8Array)
        .subarray(0, 4)
        .toString("hex"),
    ).toBe("efbbbf7b");
    expect(lines[1]?.record.id).toBe("a");
  });

  it("with carriage returns, which belong to the source", () => {
    const { lines, found } = readTranscript(first.replaceAll("\n", "\r\n"));
    expect(found).toEqual([]);
    expect(lines[1]).toMatchObject({ isSourceCanonical: true, record: message("a", null, "hi") });
    expect(lines[1]?.source).toMatch(/\r$/);
  });

  it("with bytes that are not UTF-8: read with replacements, kept as bytes", () => {
    const line = Buffer.concat([
      Buffer.from('{"type":"message","id":"b","parentId":"a","timestamp":"t","message":{"role":"user","content":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}}'),
    ]);
    const { lines, found, reader } = readTranscript(Buffer.concat([Buffer.from(first), line, Buffer.from("\n")]));
    expect(found).toEqual(["LINE_MALFORMED@3"]);
    expect(reader.findings[0]?.repaired).toBe(true);
    expect(lines[2]?.record).toMatchObject({ id: "b", message: { content: "\uFFFD\uFFFD" } });
    expect(lines[2]?.isSourceCanonical).toBe(false);
    expect(lines[2]?.source).toEqual(new Uint8Array(line));
  });

  it("behind a run of NULs", () => {
    const line = `\0\0\0${JSON.stringify(message("b", "a", "there"))}`;
    const { lines, found } = readTranscript(`${first}${line}\n`);
    expect(found).toEqual(["LINE_MALFORMED@3"]);
    expect(lines[2]).toMatchObject({
      source: line,
      isSourceCanonical: false,
      headId: "b",
      record: message("b", "a", "there"),
    });
  });
});
