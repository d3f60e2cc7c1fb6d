import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonMembers } from "../src/json-members.ts";

function members(text: string | Uint8Array): ReadonlyMap<string, unknown> | null {
  try {
    return new Map(jsonMembers(Buffer.from(text)));
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function parsed(text: string): ReadonlyMap<string, unknown> | null {
  try {
    const value = JSON.parse(text) as unknown;
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? new Map(Object.entries(value)) : null;
  } catch {
    return null;
  }
}

const sorted = (map: ReadonlyMap<string, unknown> | null): unknown =>
  map === null ? null : [...map].toSorted(([one], [other]) => (one < other ? -1 : 1));

describe("the members of a JSON object", () => {
  it("are those that JSON.parse finds", { tags: ["slow"] }, () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()),
        fc.constantFrom(0, 1, 2),
        (value, space) => {
          const text = JSON.stringify(value, null, space);
          expect(sorted(members(text))).toEqual(sorted(parsed(text)));
        },
      ),
    );
  });

  it("are refused where JSON.parse refuses, whatever was changed in the text", { tags: ["slow"] }, () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.nat(),
        fc.constantFrom("", '"', "{", "}", "[", "]", ",", ":", " ", "\\", "1", "n"),
        fc.boolean(),
        (value, place, piece, isReplaced) => {
          const whole = JSON.stringify(value);
          const at = place % (whole.length + 1);
          const text = `${whole.slice(0, at)}${piece}${whole.slice(at + (isReplaced ? 1 : 0))}`;
          expect(sorted(members(text))).toEqual(sorted(parsed(text)));
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("keep a key like __proto__, and the later of two", () => {
    const found = members('{"__proto__":{"a":1},"b":1,"b":2}');
    expect([...(found ?? [])]).toEqual([
      ["__proto__", { a: 1 }],
      ["b", 2],
    ]);
  });
});
