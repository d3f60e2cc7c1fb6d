import { Lexer } from "marked";
import { describe, expect, it } from "vitest";
import type { FileFacts } from "../src/file-facts.ts";
import { htmlStyle } from "../src/html-style.ts";
import { createHtmlPrinter } from "../src/html-printer.ts";
import { createMarkdownPrinter } from "../src/markdown-printer.ts";
import { printHtml } from "../src/print-html.ts";
import type { TranscriptPrinter } from "../src/transcript-printer.ts";
import { element, type ViewTag } from "../src/view-tree.ts";
import { message, rowsOf } from "./nodes.ts";

const chapter = { number: 1, seq: 1, title: "Fix <b>", tools: 2, errors: 1, files: 1, part: 1 };
const facts: FileFacts = {
  name: "Fix the login & <more>",
  program: "Claude Code",
  folder: "~/app",
  key: "agent:main:main",
  sessionId: "s1",
  model: null,
  createdAtMs: 0,
  updatedAtMs: 0,
  exportedAtMs: 0,
  messages: 2,
  records: 3,
  level: "compact",
  replaced: [{ what: "GitHub token", count: 2 }],
  agents: { placed: 1, others: 2 },
  chapters: [chapter, { ...chapter, number: 2, part: 2 }],
  part: 1,
  fileNames: ["a.html", "a-1.html"],
};

function printed(printer: TranscriptPrinter, records: readonly object[]): string {
  const rows = rowsOf(records).flatMap((row) => [...printer.row(row)]);
  return [...printer.head(), ...rows, ...printer.foot()].join("");
}

describe("the HTML printer", () => {
  it("writes chapters with anchors, a table of contents, and links to the other files", () => {
    const html = printed(createHtmlPrinter(facts), [message({ role: "user", content: "Fix <b>it</b>" })]);
    expect(html).toContain("<title>Fix the login &amp; &lt;more></title>");
    expect(html).toContain('<li><a href="#c1"><span class="n">1</span><span class="t">Fix &lt;b></span>');
    expect(html).toContain('<a href="./a-1.html">2</a>');
    expect(html).not.toContain("#c2");
    expect(html).toContain('<section id="c1">');
    expect(html).toContain("<p>Fix &lt;b>it&lt;/b></p>");
    expect(html).toContain("The secret scan replaced 2 texts: 2 × GitHub token.");
    expect(html).not.toMatch(/<script|\son\w+=|javascript:/i);
  });

  it("refuses what is not in the tables of elements, links and images", () => {
    const print = (...node: Parameters<typeof element>): string => [...printHtml([element(...node)])].join("");
    expect(() => print("script" as ViewTag, ["alert(1)"])).toThrow("no element script");
    expect(() => print("a", ["x"], { href: "javascript:alert(1)" })).toThrow("http, https or mailto");
    expect(() => print("img", [], { src: "https://evil.example/x.png" })).toThrow("in the file itself");
    const attrs = { class: 'x" onclick="alert(1)', onclick: "alert(1)" } as object;
    expect(print("p", ["<&>"], attrs)).toBe('<p class="x&quot; onclick=&quot;alert(1)">&lt;&amp;></p>');
  });

  it("has at least 4.5:1 between every text and its ground, in both themes", () => {
    const [light, dark] = [...htmlStyle.matchAll(/:root\{(?:color-scheme:light dark;)?(--bg[^}]*)\}/g)].map(
      ([, body = ""]) => Object.fromEntries(body.split(";").map((pair) => pair.split(":") as [string, string])),
    );
    const pairs = [
      ...["bg", "raised", "prompt"].flatMap((ground) => ["text", "soft", "accent"].map((text) => [text, ground])),
      ["added", "add"],
      ["added", "bg"],
      ["removed", "cut"],
      ["removed", "bg"],
      ["warn", "warnbg"],
      ["error", "errorbg"],
    ] as const;
    for (const theme of [light, dark]) {
      const low = pairs.filter(([text, ground]) => contrast(theme?.[`--${text}`], theme?.[`--${ground}`]) < 4.5);
      expect(low).toEqual([]);
    }
  });
});

function contrast(one: string | undefined, other: string | undefined): number {
  const [high = 0, low = 0] = [luminance(one ?? ""), luminance(other ?? "")].toSorted((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

function luminance(color: string): number {
  const [red = Number.NaN, green = Number.NaN, blue = Number.NaN] = (color.match(/[0-9a-f]{2}/gi) ?? []).map((part) => {
    const value = Number.parseInt(part, 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

describe("the Markdown printer", () => {
  const roundTrip = (text: string): { readonly markdown: string; readonly types: readonly string[] } => {
    const markdown = printed(createMarkdownPrinter({ ...facts, chapters: [], fileNames: ["a.md"] }), [
      message({ role: "assistant", content: text }),
    ]);
    const body = markdown.slice(markdown.indexOf("**Assistant**"), markdown.lastIndexOf("---"));
    const types = new Lexer().lex(body).map(({ type }) => type);
    return { markdown, types: types.filter((type) => type !== "space").slice(1) };
  };

  it.each([
    ["a fence inside of a fence", "````md\n```js\nx\n```\n````", ["code"], "````md\n```js\nx\n```\n````"],
    ["a table", "|a|b|\n|-|-|\n|1|x \\| y|", ["table"], "| a | b |\n| --- | --- |\n| 1 | x \\| y |"],
    ["HTML", "<details><b>x</b>\n\n# no", ["paragraph", "heading"], "\\<details\\>\\<b\\>x\\</b\\>"],
    ["words that look like signs", "1\\. a\n\\# b\n\\- c", ["paragraph"], "1\\. a  \n\\# b  \n\\- c"],
    ["a list in a list", "- a\n  - b\n- c", ["list"], "- a\n  \n  - b\n- c"],
    ["code with backticks", "``a`b``", ["paragraph"], "``a`b``"],
  ])("keeps %s", (_name, text, types, written) => {
    const { markdown, types: found } = roundTrip(text);
    expect(markdown).toContain(written);
    expect(found).toEqual(types);
  });

  it("makes the prompts headings", () => {
    const markdown = printed(createMarkdownPrinter(facts), [message({ role: "user", content: "Fix <b>" })]);
    expect(markdown).toContain("## 1. Fix \\<b\\>\n\n*User, 2026-06-30 10:00 UTC*\n\nFix \\<b\\>\n");
    expect(markdown).toContain("1. Fix \\<b\\> (2 calls · 1 failed · 1 file)");
    expect(markdown).toContain("File 1 of 2: 1 [2](<./a-1.html>)");
  });
});
