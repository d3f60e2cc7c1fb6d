import { runSteps } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { markdownTree } from "../src/markdown-tree.ts";
import { outline } from "./nodes.ts";

const treeOf = (text: string): string => outline(runSteps(markdownTree(text)));

describe("Markdown as a tree", () => {
  it.each([
    [
      "a paragraph with its line ends",
      "Read *this*\nand **that** `now`.",
      "p(Read em(this)⏎and strong(that) code(now).)",
    ],
    ["a list that starts at 3", "3. a\n4. b", "ol[3](li(a)li(b))"],
    ["a list with tasks", "- [x] done\n- [ ] open", "ul(li(☑ done)li(☐ open))"],
    ["a table", "|a|b|\n|-|-:|\n|1|2|", "div[wide](table(tr(th(a)th[right](b))tr(td(1)td[right](2))))"],
    ["a fence inside of a longer fence", "````md\n```js\nx\n```\n````", "div(div[lang](md)pre(```js⏎x⏎```))"],
    ["an open fence", "```sh\nls", "div(div[lang](sh)pre(ls))"],
    ["an empty fence", "a\n\n```\n```\n\nb", "p(a)pre()p(b)"],
    ["headings and lines", "# One\n\n---\n\n> quoted", "h4[d1](One)div[hr]()blockquote(p(quoted))"],
    ["entities", "a &lt;b&gt; &amp; c", "p(a <b> & c)"],
  ])("reads %s", (_name, text, tree) => {
    expect(treeOf(text)).toBe(tree);
  });

  it.each([
    ["<script>alert(1)</script>", "p(<script>alert(1)</script>)"],
    ["a <img src=x onerror=alert(1)> b", "p(a <img src=x onerror=alert(1)> b)"],
    ["[a](javascript:alert(1))", "p(a (javascript:alert(1)))"],
    ["[a](data:text/html,x)", "p(a (data:text/html,x))"],
    ["[a](https://user:pw@evil.example/)", "p(a (https://user:pw@evil.example/))"],
    ["![a](https://evil.example/x.png)", "p(a[https://evil.example/x.png]([image] a)span[host]( (evil.example)))"],
    ["[paypal.com](https://evil.example/)", "p(a[https://evil.example/](paypal.com)span[host]( (evil.example)))"],
    ["https://example.com/a", "p(a[https://example.com/a](https://example.com/a))"],
    ["a\u001b[31mb\u202ec\u0000", "p(a␛[31mb⟨U+202E⟩c␀)"],
  ])("shows %s as text or as a link that tells where it leads", (text, tree) => {
    expect(treeOf(text)).toBe(tree);
  });

  it.each([
    ["quotations", "> ".repeat(20_000)],
    ["numbered lists", "1. ".repeat(20_000)],
    ["underscores", "a_".repeat(30_000)],
    ["brackets", "[".repeat(60_000)],
    ["deep lists", Array.from({ length: 400 }, (_, at) => `${" ".repeat(at * 2)}- a`).join("\n")],
  ])("leaves %s that would take the lexer too long as they are", (_name, text) => {
    const nodes = runSteps(markdownTree(text));
    expect(nodes.every((node) => typeof node !== "string" && node.tag === "pre")).toBe(true);
    expect(outline(nodes)).toContain(text.trim().slice(0, 8).replaceAll("\n", "⏎"));
  });

  it("loses no word between its pieces", () => {
    const text = Array.from({ length: 3000 }, (_, at) => `word${at}${at % 7 === 0 ? "\n\n" : " "}`).join("");
    const shown = treeOf(text);
    expect(Array.from({ length: 3000 }, (_, at) => `word${at}`).filter((word) => !shown.includes(word))).toEqual([]);
  });
});
