import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLineSplitter, decodeLine } from "@throughline/openclaw-format";
import { encodeLine } from "../src/decode-line.ts";
import type { SplitLine } from "../src/line-splitter.ts";

function split(bytes: Uint8Array, cuts: readonly number[]): SplitLine[] {
  const splitter = createLineSplitter();
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  const lines: SplitLine[] = [];
  let start = 0;
  for (const end of ends) {
    // The buffer is overwritten after each chunk, as a reader that reuses it does.
    const chunk = new Uint8Array(bytes.subarray(start, end));
    lines.push(...splitter.push(chunk).map((line) => ({ ...line, bytes: new Uint8Array(line.bytes) })));
    chunk.fill(0x7a);
    start = end;
  }
  const last = splitter.end();
  return last === null ? lines : [...lines, last];
}

function join(lines: readonly SplitLine[]): Uint8Array {
  return Buffer.concat(lines.flatMap((line) => (line.isTerminated ? [line.bytes, Buffer.from("\n")] : [line.bytes])));
}

describe("createLineSplitter", () => {
  it("gives back every byte, wherever the chunks are cut", () => {
    const byte = fc.oneof(fc.constantFrom(0x0a, 0x0d, 0x7b, 0x22, 0x00, 0xe2), fc.integer({ min: 0, max: 255 }));
    const bytes = fc.array(byte, { maxLength: 200 }).map((values) => Uint8Array.from(values));
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(), { maxLength: 8 }), (input, cuts) => {
        const lines = split(input, cuts);
        expect(Buffer.compare(join(lines), input)).toBe(0);
        for (const line of lines) {
          expect(line.bytes.includes(0x0a)).toBe(false);
          expect(line.sizeBytes).toBe(line.bytes.length);
          expect(Buffer.compare(input.subarray(line.byteOffset, line.byteOffset + line.sizeBytes), line.bytes)).toBe(0);
        }
      }),
    );
  });

  it("cuts at line feeds only: a carriage return, U+2028 and U+2029 stay inside a line", () => {
    const lines = split(Buffer.from('{"a":"x\u2028y\u2029z"}\r\n{"b":1}\n\n{"c"'), []);
    expect(lines.map((line) => decodeLine(line.bytes))).toEqual(['{"a":"x\u2028y\u2029z"}\r', '{"b":1}', "", '{"c"']);
    expect(lines.map((line) => line.isTerminated)).toEqual([true, true, true, false]);
  });

  it("keeps a bounded part of an over-long line and its true length, and goes on after it", () => {
    const splitter = createLineSplitter({ maxLineBytes: 10 });
    const lines = [];
    for (let i = 0; i < 100; i++) lines.push(...splitter.push(Buffer.from("x".repeat(50))));
    expect(lines).toEqual([]);
    lines.push(...splitter.push(Buffer.from("\nnext\n")));
    expect(lines.map((line) => [line.bytes.length, line.sizeBytes, line.byteOffset])).toEqual([
      [10, 5000, 0],
      [4, 4, 5001],
    ]);
    expect(splitter.end()).toBe(null);
  });

  it("counts offsets from where the first chunk lies", () => {
    const splitter = createLineSplitter({ byteOffset: 100 });
    expect(splitter.push(Buffer.from("ab\ncd\n")).map((line) => line.byteOffset)).toEqual([100, 103]);
  });
});

describe("decodeLine", () => {
  it("is text exactly when the bytes are well-formed UTF-8 without a byte order mark", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const line = decodeLine(bytes);
        expect(Buffer.compare(encodeLine(line), bytes)).toBe(0);
        const text = Buffer.from(bytes).toString("utf8");
        const isText = Buffer.compare(Buffer.from(text), bytes) === 0 && !text.startsWith("\uFEFF");
        expect(typeof line === "string").toBe(isText);
      }),
      { numRuns: 500 },
    );
    const reused = Buffer.from([0xff, 0x41]);
    const kept = decodeLine(reused);
    reused.fill(0);
    expect(kept).toEqual(Uint8Array.from([0xff, 0x41]));
    expect(decodeLine(Buffer.from("\uFEFF{}"))).toBeInstanceOf(Uint8Array);
    expect(decodeLine(Buffer.from('{"a":"\\ud800"}'))).toBe('{"a":"\\ud800"}');
  });
});
