import { describe, expect, it } from "vitest";
import { checkWords } from "../check-words.ts";
import { parseSource, proseOfMarkdown, proseOfSource, sentencesOf, wordCount } from "../prose.ts";
import { temporaryTree } from "./temporary-tree.ts";

const long = `${Array.from({ length: 31 }, (_, index) => `word${index}`).join(" ")}.`;

describe("the prose of a Markdown file", () => {
  it("has paragraphs over several lines, list items and cells, and no fences", () => {
    const text =
      "# A title\n\nOne line\nand another.\n- an item\n\n| a | b |\n| --- | --- |\n| `x|y` | two |\n\n```sh\nis told\n```\n";
    expect(proseOfMarkdown(text).map(({ kind, line, text: piece }) => [kind, line, piece])).toEqual([
      ["paragraph", 1, "A title"],
      ["paragraph", 3, "One line and another."],
      ["paragraph", 5, "an item"],
      ["cell", 7, "a"],
      ["cell", 7, "b"],
      ["cell", 9, "Code"],
      ["cell", 9, "two"],
    ]);
  });

  it("counts code and links as the words they stand for", () => {
    const [piece] = proseOfMarkdown("See [the guide](https://example.com/a/b) for `run --now`.");
    expect(piece?.text).toBe("See the guide for Code.");
  });
});

describe("the prose of a source file", () => {
  it("has docstrings without examples, and messages, but no SQL and no keys", () => {
    const text = [
      "/**",
      " * Reads a file.",
      " * @example",
      " * is told of nothing here",
      " */",
      "export const message = `The file ${path} is not there.`;",
      'const sql = "SELECT what is none FROM records";',
      'const key = "two words";',
    ].join("\n");
    expect(proseOfSource(parseSource("a.ts", text)).map(({ kind, text: piece }) => [kind, piece])).toEqual([
      ["docstring", "Reads a file."],
      ["message", "The file Code is not there."],
    ]);
  });
});

describe("sentences", () => {
  it("end with a mark before a capital letter, and abbreviations end none", () => {
    expect(sentencesOf('Use e.g. a file. It is "read." Then closed!')).toEqual([
      "Use e.g. a file.",
      'It is "read.',
      "Then closed!",
    ]);
    expect(wordCount("one – two, 3 words |")).toBe(4);
  });
});

describe("the check of words", () => {
  it("names file, line and what to write, for pages, messages and docstrings", () => {
    const tree = temporaryTree({
      "README.md": `The session is gone on with.\n\n${long}\n\n| ${"x".repeat(201)} |\n`,
      "packages/a/package.json": "{}",
      "packages/a/src/a.ts": 'throw new Error("The caller is told of the colour.");',
      "docs/api/list.md": "It goes on with this.",
    });
    const report = checkWords(tree);
    expect(report).toMatchObject({ files: 2, patterns: 3, longSentences: 1, longCells: 1 });
    expect(report.violations.map((violation) => violation.replace(/ .*/s, ""))).toEqual([
      "README.md:1",
      "README.md:3",
      "README.md:5",
      "packages/a/src/a.ts:1",
      "packages/a/src/a.ts:1",
    ]);
    expect(report.violations[0]).toContain("write resumes or continues");
  });

  it("finds lines of comments without a subject, in sources only", () => {
    const source = [
      "/**",
      " * Returns the size.",
      " * Of a file that nobody reads, it is 0.",
      " */",
      "export const size = 1; // What is left.",
      "// The caller may be gone, so the size is stored.",
      'export const text = "Who reads this?";',
    ].join("\n");
    const tree = temporaryTree({
      "packages/a/package.json": "{}",
      "packages/a/src/a.ts": source,
      "packages/a/test/a.test.ts": "// What a test says.",
    });
    const report = checkWords(tree);
    expect(report.fragments).toBe(2);
    expect(report.violations.map((violation) => violation.slice(0, 23))).toEqual([
      "packages/a/src/a.ts:3 a",
      "packages/a/src/a.ts:5 a",
    ]);
  });

  it("finds nothing in plain text", () => {
    const tree = temporaryTree({ "README.md": "Throughline stores each record before the next step.\n" });
    expect(checkWords(tree).violations).toEqual([]);
  });
});
