import { plainText } from "./markdown-tree.ts";
import type { ViewElement, ViewNode } from "./view-tree.ts";

/** Prints a tree as Markdown. What the transcript says in words is escaped, so that it stays words. */
export function* printMarkdown(nodes: readonly ViewNode[], indent: string = ""): Generator<string, void, void> {
  for (const node of nodes) {
    const text = typeof node === "string" ? lineText(inline([node])) : blockText(node);
    if (text === "") continue;
    yield `${indented(text, indent)}\n\n`;
  }
}

function indented(text: string, indent: string): string {
  return indent === "" ? text : text.replaceAll("\n", `\n${indent}`);
}

function blocks(nodes: readonly ViewNode[]): string {
  // Words and blocks may stand side by side in an item of a list.
  const parts: string[] = [];
  let words: ViewNode[] = [];
  const end = (): void => {
    const text = lineText(inline(words)).trim();
    if (text !== "") parts.push(text);
    words = [];
  };
  for (const node of nodes) {
    if (typeof node === "string" || inlineTags.has(node.tag)) words.push(node);
    else {
      end();
      parts.push(blockText(node));
    }
  }
  end();
  return parts.filter((part) => part !== "").join("\n\n");
}

const inlineTags: ReadonlySet<string> = new Set(["a", "code", "em", "span", "strong"]);

function blockText({ tag, attrs, children }: ViewElement): string {
  switch (tag) {
    case "pre":
      return fenced(plainText(children), attrs.class === "diff" ? "diff" : "");
    case "h4":
      return `#### ${inline(children).replaceAll("\n", " ")}`;
    case "blockquote":
      return `> ${indented(blocks(children), "> ")}`;
    case "ul":
    case "ol":
      return listText(tag, Number(attrs.start ?? 1), children);
    case "table":
      return tableText(children);
    case "img":
      return `![${escapeText(attrs.alt ?? "")}](${attrs.src ?? ""})`;
    case "div":
      return divText(attrs.class, children);
    default:
      return lineText(inline(children));
  }
}

function divText(name: string | undefined, children: readonly ViewNode[]): string {
  if (name === "hr") return "---";
  const [label, code] = children;
  // Code with its language.
  if (children.length === 2 && typeof label === "object" && label.attrs.class === "lang" && typeof code === "object")
    return fenced(plainText(code.children), plainText(label.children).replace(/[^\w+#.-]/g, ""));
  return name === "label" || name === "more" ? `*${inline(children).trim()}*` : blocks(children);
}

/** A fence is longer than every run of backticks inside of it. */
export function fenced(text: string, language: string = ""): string {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  const fence = "`".repeat(Math.max(3, longest + 1));
  return `${fence}${language}\n${text.endsWith("\n") ? text : `${text}\n`}${fence}`;
}

function listText(tag: "ul" | "ol", start: number, items: readonly ViewNode[]): string {
  return items
    .map((item, index) => {
      const mark = tag === "ul" ? "- " : `${start + index}. `;
      return mark + indented(typeof item === "string" ? "" : blocks(item.children), " ".repeat(mark.length));
    })
    .join("\n");
}

function tableText(rows: readonly ViewNode[]): string {
  const lines = rows.flatMap((row) => (typeof row === "string" ? [] : [cellsOf(row)]));
  const [head = []] = lines;
  const border = head.map(() => "---");
  return [head, border, ...lines.slice(1)].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function cellsOf({ children }: ViewElement): readonly string[] {
  return children.flatMap((cell) => (typeof cell === "string" ? [] : [inline(cell.children).replaceAll("\n", " ")]));
}

function inline(nodes: readonly ViewNode[]): string {
  return nodes.map((node) => (typeof node === "string" ? escapeText(node) : inlineText(node))).join("");
}

function inlineText({ tag, attrs, children }: ViewElement): string {
  switch (tag) {
    case "strong":
      return `**${inline(children)}**`;
    case "em":
      return `*${inline(children)}*`;
    case "code":
      return codeSpan(plainText(children));
    case "a":
      return `[${inline(children)}](<${(attrs.href ?? "").replaceAll("<", "%3C").replaceAll(">", "%3E")}>)`;
    case "span":
      return attrs.class === "del" ? `~~${inline(children)}~~` : inline(children);
    default:
      return inline(children);
  }
}

function codeSpan(text: string): string {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  const mark = "`".repeat(longest + 1);
  const space = text.startsWith("`") || text.endsWith("`") ? " " : "";
  return `${mark}${space}${text.replaceAll("\n", " ").replaceAll("|", "\\|")}${space}${mark}`;
}

/** Escapes what Markdown reads as a sign. An underscore inside of a word is none. */
export function escapeText(text: string): string {
  return text
    .replace(/[\\`*[\]<>|]/g, "\\$&")
    .replaceAll("~~", "\\~\\~")
    .replace(/&(?=[#A-Za-z])/g, "\\&")
    .replace(/(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, "\\_");
}

/** Escapes what Markdown reads as a sign at the start of a line. A line feed of the text ends a line. */
export function lineText(text: string): string {
  return text
    .split("\n")
    .map((line) =>
      line
        .replace(/^\s{1,200}/, "")
        .replace(/^[#+=-]/, "\\$&")
        .replace(/^(\d{1,9})([.)])/, "$1\\$2"),
    )
    .join("  \n");
}
