import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Automaton } from "../src/linear/automaton.ts";
import { linearExpression } from "../src/linear/linear-expression.ts";
import { parseExpression } from "../src/linear/parse-expression.ts";

/** Expressions of a grammar that holds everything the parser knows. */
const part: fc.Memo<string> = fc.memo((depth) =>
  depth <= 1
    ? fc.constantFrom(
        "a",
        "b",
        "[ab]",
        "[^a]",
        "\\w",
        " ",
        "\\b",
        "\\B",
        "^",
        "$",
        ".",
        "\\.",
        "\\n",
        "\\u0061",
        "\\x62",
      )
    : fc.oneof(
        fc.tuple(part(depth - 1), part(depth - 1)).map((both) => both.join("")),
        fc.tuple(part(depth - 1), part(depth - 1)).map((both) => `(?:${both.join("|")})`),
        fc
          .tuple(part(depth - 1), fc.constantFrom("*", "+", "?", "{0,3}", "{2}", "{1,}", "*?", "{1,2}?"))
          .map(([item, repeat]) => `(?:${item})${repeat}`),
        fc
          .tuple(fc.constantFrom("(?=", "(?!", "(?<=", "(?<!", "("), part(depth - 1))
          .map(([opening, item]) => `${opening}${item})`),
      ),
);
const texts = fc
  .array(fc.constantFrom("a", "b", " ", ".", "\n", "c", "aa"), { maxLength: 10 })
  .map((all) => all.join(""));

describe("linear expressions", () => {
  it("find what RegExp finds, where RegExp finds it", { tags: ["slow"] }, () => {
    fc.assert(
      fc.property(part(4), fc.constantFrom("", "m", "i", "im"), texts, (source, flags, text) => {
        const expected = text.search(new RegExp(source, flags));
        const linear = linearExpression(source, flags);
        expect([linear.test(text), linear.search(text)]).toEqual([expected !== -1, expected]);
      }),
      { numRuns: 3000 },
    );
  });

  it("refuse what they cannot hold", () => {
    for (const source of ["(a)\\1", "(?<name>a)", "\\p{L}", "\\ca"]) {
      expect(() => linearExpression(source).test("a"), source).toThrow(SyntaxError);
    }
    expect(() => linearExpression("(").test("a")).toThrow(SyntaxError);
  });

  it.each([
    ["(?:a+)+b", "a"],
    ["(?:a|aa|a{0,60}){0,5}b", "a"],
    ["(?:ab?){0,40}c(?:ab?){0,40}d", "abac"],
    ["\\w+(?:_\\w+)+-", "_a"],
  ])("take twice the steps for twice the text, never more a character than %s has parts", (source, piece) => {
    const { root, atoms } = parseExpression(source);
    const stepsFor = (length: number): number => {
      const text = piece.repeat(length);
      const kinds = [...new Set(text)];
      const rows = kinds.map((kind) => Uint8Array.from(atoms, (atom) => (new RegExp(`^${atom}$`).test(kind) ? 1 : 0)));
      const automaton = new Automaton(root, "forward", rows);
      const classes = Uint16Array.from(text, (character) => kinds.indexOf(character));
      automaton.run({ classes, holds: new Uint32Array(text.length + 1) }, () => true);
      return automaton.steps;
    };
    const [one, two, four] = [stepsFor(2000), stepsFor(4000), stepsFor(8000)] as const;
    expect(four - two).toBe(2 * (two - one));
    expect(four).toBeLessThan(8000 * piece.length * 2000);
  });

  it.each([
    ["(?:a+)+$", "a"],
    ["\\b\\S+@\\S+\\.\\w+", "a@"],
    ["(?:a|aa|a{0,60}){0,5}b", "a"],
    ["\\s+$", " \t"],
  ])("answer %s in time that a backtracking search would not end in", (source, piece) => {
    const linear = linearExpression(source);
    expect(linear.test(`${piece.repeat(500_000)}\u0000`)).toBe(false);
    expect(linear.search(`${piece.repeat(500_000)}\u0000`)).toBe(-1);
  });
});
