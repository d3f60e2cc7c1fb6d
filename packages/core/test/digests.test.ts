import { createHash } from "node:crypto";
import { crc32 as nodeCrc32 } from "node:zlib";
import { describe, expect, it } from "vitest";
import { computeCrc32, crc32 } from "../src/crc32.ts";
import { isSameJson } from "../src/same-json.ts";
import { computeSha256Hex, sha256Hex } from "../src/sha256.ts";

// Around the ends of blocks (55, 56, 63, 64, 119), and text of more than one byte a character.
const texts = [
  ...Array.from({ length: 200 }, (_, length) => "x".repeat(length)),
  "Grüße, 中文, 😀, \u2028, \0".repeat(300),
  "\ud800 is no character",
];

describe("digests without the runtime's modules", () => {
  it("are those of node:crypto", () => {
    for (const text of texts) {
      const expected = createHash("sha256").update(text).digest("hex");
      expect(computeSha256Hex(text)).toBe(expected);
      expect(sha256Hex(text)).toBe(expected);
    }
  });

  it("are those of node:zlib, also in pieces", () => {
    for (const text of texts) {
      expect(computeCrc32(text)).toBe(nodeCrc32(text));
      const bytes = new TextEncoder().encode(text);
      const [first, second] = [bytes.subarray(0, 17), bytes.subarray(17)];
      expect(computeCrc32(second, computeCrc32(first))).toBe(nodeCrc32(bytes));
      expect(crc32(second, crc32(first))).toBe(nodeCrc32(bytes));
    }
  });
});

describe("values from JSON", () => {
  it.each([
    ['{"a":1,"b":[1,{"c":null}]}', '{"b":[1,{"c":null}],"a":1}', true],
    ['{"a":1}', '{"a":1,"b":2}', false],
    ['{"a":1,"b":2}', '{"a":1,"c":2}', false],
    ['{"toString":1}', "{}", false],
    ['{"__proto__":{"a":1}}', '{"__proto__":{"a":2}}', false],
    ["[1,2]", "[2,1]", false],
    ["[]", "{}", false],
    ["null", "{}", false],
    ['"1"', "1", false],
  ])("%s and %s: %s", (left, right, isSame) => {
    expect(isSameJson(JSON.parse(left), JSON.parse(right))).toBe(isSame);
    expect(isSameJson(JSON.parse(right), JSON.parse(left))).toBe(isSame);
  });
});
