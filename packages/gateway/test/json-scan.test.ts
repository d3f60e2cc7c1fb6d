import { describe, expect, it } from "vitest";
import { JsonScan } from "../src/http/json-scan.ts";

/** A generator that gives the same numbers each time. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const pieces = ['"', "\\", "\\\\", "[", "{", "},", "x".repeat(40), "é", "😀", "\n", ',"', '\\"', "a"];

function textOf(draw: (below: number) => number): string {
  return Array.from({ length: draw(12) }, () => pieces[draw(pieces.length)]).join("");
}

function valueOf(draw: (below: number) => number, depth: number): unknown {
  const kind = draw(depth > 5 ? 3 : 6);
  if (kind === 0) return draw(1000) / 4;
  if (kind < 3) return textOf(draw);
  const values = Array.from({ length: draw(5) }, () => valueOf(draw, depth + 1));
  return kind < 5 ? values : Object.fromEntries(values.map((value) => [textOf(draw), value]));
}

/** What stands in a value, counted in the value itself. */
function shapeOf(value: unknown): { readonly levels: number; readonly values: number } {
  if (typeof value !== "object" || value === null) return { levels: 0, values: 0 };
  const children = Object.values(value).map(shapeOf);
  return {
    levels: 1 + Math.max(0, ...children.map(({ levels }) => levels)),
    values: 1 + Math.max(0, children.length - 1) + children.reduce((sum, { values }) => sum + values, 0),
  };
}

/** The bytes of a text in pieces that end anywhere, also inside of an escape. */
function scanned(text: string, limits: ReturnType<typeof shapeOf>, draw: (below: number) => number): string | null {
  const bytes = Buffer.from(text);
  const scan = new JsonScan(limits);
  for (let from = 0; from < bytes.length;) {
    const to = from + 1 + draw(60);
    const excess = scan.take(bytes.subarray(from, to));
    if (excess !== null) return excess;
    from = to;
  }
  return null;
}

describe("the scan of JSON ahead of parsing", () => {
  it("counts levels and values as they are in the value, wherever the bytes are cut", () => {
    const draw = seeded(7);
    for (let round = 0; round < 2000; round++) {
      const value = [valueOf(draw, 0)];
      const text = JSON.stringify(value, null, draw(2));
      const shape = shapeOf(value);
      expect(scanned(text, shape, draw)).toBe(null);
      expect(scanned(text, { ...shape, levels: shape.levels - 1 }, draw)).toBe("levels");
      expect(scanned(text, { ...shape, values: shape.values - 1 }, draw)).toBe("values");
    }
  });
});
