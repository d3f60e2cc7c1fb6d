import { describe, expect, it } from "vitest";
import { codeTokens } from "../src/code/code-tokens.ts";
import { languageOfPath } from "../src/code/code-block.tsx";

/** Writes each token as its kind and its text. */
const tokens = (text: string, language: string): readonly string[] =>
  codeTokens(text, language).map(({ kind, from, to }) => `${kind} ${text.slice(from, to)}`);

describe("the tokens of a code", () => {
  it("are comments, strings, numbers and keywords of each kind of language", () => {
    expect(tokens("const a = 1.5; // no\nlet b = 'it\\'s' + `x\ny`;", "ts")).toEqual([
      "keyword const",
      "number 1.5",
      "comment // no",
      "keyword let",
      "string 'it\\'s'",
      "string `x\ny`",
    ]);
    expect(tokens('def f():\n  """two\nlines"""\n  return "#" # end', "python")).toEqual([
      "keyword def",
      'string """two\nlines"""',
      "keyword return",
      'string "#"',
      "comment # end",
    ]);
    expect(tokens("SELECT name FROM t -- all\nWHERE id = 7", "sql")).toEqual([
      "keyword SELECT",
      "keyword FROM",
      "comment -- all",
      "keyword WHERE",
      "number 7",
    ]);
    expect(tokens('<a href="x"><!-- no --></a>', "html")).toEqual(['string "x"', "comment <!-- no -->"]);
    expect(tokens("fn f<'a>(x: &'a str) -> u8 { 1 }", "rs")).toEqual([
      "keyword fn",
      "keyword str",
      "keyword u8",
      "number 1",
    ]);
  });

  it("take whole words, and no part of an address or of a name", () => {
    expect(tokens("constant interfaces http://a.b if2 v1", "ts")).toEqual([]);
    expect(tokens('echo "a" $# http://x # why', "sh")).toEqual(["keyword echo", 'string "a"', "comment # why"]);
  });

  it("end an open string with its line, and an open comment with the text", () => {
    expect(tokens("a = 'open\nif", "js")).toEqual(["string 'open", "keyword if"]);
    expect(tokens("/* open\nif", "js")).toEqual(["comment /* open\nif"]);
  });

  it("are none without a known language, and in a text over 200,000 characters", () => {
    expect(tokens("const a = 1", "")).toEqual([]);
    expect(tokens("const a = 1", "brainfuck")).toEqual([]);
    expect(codeTokens("1 ".repeat(100_001), "ts")).toEqual([]);
  });

  it("cover texts of any shape once and in order", () => {
    const marks = ["'", '"', "`", '"""', "/*", "*/", "//", "#", "\\", "\n", "<!--", "-->", "a1", "9.", "if", "--", " "];
    for (const language of [
      "ts",
      "c",
      "py",
      "sh",
      "go",
      "rs",
      "rb",
      "swift",
      "php",
      "sql",
      "yaml",
      "json",
      "css",
      "html",
    ])
      for (const [index, mark] of marks.entries()) {
        const text = Array.from({ length: 90 }, (_, at) =>
          at % 3 === 0 ? mark : (marks[(at * 7 + index) % marks.length] ?? ""),
        ).join("");
        const borders = codeTokens(text, language).flatMap(({ from, to }) => [from, to]);
        const isOrdered = borders.every((at, place) => at >= (borders[place - 1] ?? 0) && at <= text.length);
        expect(isOrdered, `${language} ${mark}`).toBe(true);
      }
  });
});

describe("the language of a path", () => {
  it("is the end of its name, and none of a command or a list", () => {
    expect(languageOfPath("/a/b.test.ts")).toBe("ts");
    expect(languageOfPath("Makefile")).toBe("");
    expect(languageOfPath("cat a.ts")).toBe("");
    expect(languageOfPath("a.ts, b.py")).toBe("");
  });
});
