import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createIndexMemberScanner } from "../src/index-members.ts";

function scan(
  text: string,
  chunkBytes: number,
): { readonly members: readonly (readonly [string, string])[]; readonly isWhole: boolean } {
  const bytes = Buffer.from(text);
  const scanner = createIndexMemberScanner();
  const members = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    for (const { key, fromBytes, toBytes } of scanner.push(bytes.subarray(at, at + chunkBytes))) {
      members.push([key, bytes.subarray(fromBytes, toBytes).toString().trim()] as const);
    }
  }
  return { members, isWhole: scanner.isWhole };
}

describe("the members of a large index", () => {
  it("are those that a parser gives, however the file is cut", () => {
    const value = fc.oneof(fc.json(), fc.constantFrom('"}"', '["],", {"a": "\\\\"}]', '"\\""', "1", "null"));
    const index = fc.array(fc.tuple(fc.string(), value), { maxLength: 6 });
    fc.assert(
      fc.property(
        index,
        fc.integer({ min: 1, max: 9 }),
        fc.constantFrom("", " ", "\n\t"),
        (members, chunkBytes, space) => {
          const text = `{${members.map(([key, json]) => `${space}${JSON.stringify(key)}${space}:${space}${json}${space}`).join(",")}${space}}${space}`;
          expect(scan(text, chunkBytes)).toEqual({
            isWhole: true,
            members: members.map(([key, json]) => [key, json.trim()]),
          });
        },
      ),
    );
  });

  it.each([
    "",
    "{",
    "[]",
    "{}x",
    '{"a":1',
    '{"a":1,}',
    '{"a" 1}',
    "{a:1}",
    '{"a":1}{"b":2}',
    '{,"a":1}',
    '{"a":1 "b":2',
    '{"\\x":1}',
    '{"a":[1}',
    "null",
  ])("are not taken from %j", (text) => {
    expect(scan(text, 3).isWhole).toBe(false);
  });

  it("are found behind a byte order mark", () => {
    expect(scan('\uFEFF{"a": 1}', 2)).toEqual({ isWhole: true, members: [["a", "1"]] });
  });
});
