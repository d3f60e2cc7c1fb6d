import type { Steps } from "@throughline/core/internal";
import { Lexer, type Token, type Tokens } from "marked";
import { markdownPieces, type MarkdownPiece } from "./markdown-pieces.ts";
import { safeLink } from "./safe-link.ts";
import { plainBlock } from "./text-blocks.ts";
import { element, type ViewElement, type ViewNode } from "./view-tree.ts";
import { visibleText } from "./visible-text.ts";

const mostCharacters = 256 * 1024;
const mostLevels = 32;

/** Returns Markdown as a tree. HTML in it is text. A text that is too long, or that is no prose, stays as it is written. */
export function* markdownTree(text: string): Steps<readonly ViewNode[]> {
  if (text.length > mostCharacters) return [yield* plainBlock(text, "t")];
  const nodes: ViewNode[] = [];
  for (const piece of markdownPieces(text)) {
    nodes.push(...(yield* pieceTree(piece)));
    yield;
  }
  return nodes;
}

function* pieceTree({ kind, text, language }: MarkdownPiece): Steps<readonly ViewNode[]> {
  if (kind === "code") return [codeBlock(yield* plainBlock(text), language)];
  if (kind === "plain") return [yield* plainBlock(text, "t")];
  return blockNodes(new Lexer({ gfm: true }).lex(text), 0);
}

function codeBlock(block: ViewElement, language: string): ViewElement {
  const name = visibleText(language);
  return name === "" ? block : element("div", [element("div", [name], { class: "lang" }), block]);
}

function blockNodes(tokens: readonly Token[], level: number): readonly ViewNode[] {
  return tokens.flatMap((token) => blockNode(token, level + 1));
}

function blockNode(token: Token, level: number): readonly ViewNode[] {
  if (level > mostLevels) return [visibleText(token.raw)];
  switch (token.type) {
    case "space":
      return [];
    case "heading":
      return [element("h4", inlineNodes(token.tokens ?? [], level), { class: `d${(token as Tokens.Heading).depth}` })];
    case "code":
      return [codeBlock(element("pre", [visibleText((token as Tokens.Code).text)]), (token as Tokens.Code).lang ?? "")];
    case "blockquote":
      return [element("blockquote", blockNodes(token.tokens ?? [], level))];
    case "list":
      return [listNode(token as Tokens.List, level)];
    case "table":
      return [tableNode(token as Tokens.Table, level)];
    case "hr":
      return [element("div", [], { class: "hr" })];
    case "text":
      return token.tokens === undefined ? [visibleText(token.raw)] : inlineNodes(token.tokens, level);
    case "paragraph":
      return [element("p", inlineNodes(token.tokens ?? [], level))];
    default:
      // HTML, definitions of links, and what a later version adds.
      return token.raw.trim() === "" ? [] : [element("p", [visibleText(token.raw.trim())])];
  }
}

function listNode({ ordered, start, items }: Tokens.List, level: number): ViewElement {
  const children = items.map(({ task, checked, tokens }) => {
    const sign: readonly ViewNode[] = task ? [checked === true ? "☑ " : "☐ "] : [];
    const own = tokens.filter(({ type }) => type !== "checkbox");
    return element("li", [...sign, ...blockNodes(own, level)]);
  });
  if (!ordered) return element("ul", children);
  return element("ol", children, typeof start === "number" && start !== 1 ? { start: String(start) } : {});
}

function tableNode({ header, rows }: Tokens.Table, level: number): ViewElement {
  const row = (tag: "td" | "th", cells: readonly Tokens.TableCell[]): ViewElement =>
    element(
      "tr",
      cells.map(({ tokens, align }) =>
        element(tag, inlineNodes(tokens, level), align === "right" ? { class: "right" } : {}),
      ),
    );
  const table = element("table", [row("th", header), ...rows.map((cells) => row("td", cells))]);
  return element("div", [table], { class: "wide" });
}

function inlineNodes(tokens: readonly Token[], level: number): readonly ViewNode[] {
  return tokens.flatMap((token) => inlineNode(token, level + 1));
}

function inlineNode(token: Token, level: number): readonly ViewNode[] {
  if (level > mostLevels) return [visibleText(token.raw)];
  const inner = (): readonly ViewNode[] => inlineNodes((token as Tokens.Generic).tokens ?? [], level);
  switch (token.type) {
    case "strong":
      return [element("strong", inner())];
    case "em":
      return [element("em", inner())];
    case "del":
      return [element("span", inner(), { class: "del" })];
    case "codespan":
      return [element("code", [visibleText((token as Tokens.Codespan).text)])];
    case "br":
      return ["\n"];
    case "link":
      return linkNodes((token as Tokens.Link).href, inner());
    case "image":
      return linkNodes((token as Tokens.Image).href, [`[image] ${visibleText((token as Tokens.Image).text)}`]);
    case "escape":
      return [visibleText((token as Tokens.Escape).text)];
    case "text":
      return token.tokens === undefined ? [visibleText(withEntities((token as Tokens.Text).text))] : inner();
    default:
      return [visibleText(token.raw)];
  }
}

/** A text that hides where its link leads gets the host behind it. An address that must not be followed stays text. */
function linkNodes(address: string, text: readonly ViewNode[]): readonly ViewNode[] {
  const link = safeLink(address);
  const shown = plainText(text);
  if (link === null) return shown === address ? text : [...text, ` (${visibleText(address)})`];
  const anchor = element("a", text, { href: link.href, rel: "noopener noreferrer" });
  if (shown.includes(link.target)) return [anchor];
  return [anchor, element("span", [` (${visibleText(link.target)})`], { class: "host" })];
}

export function plainText(nodes: readonly ViewNode[]): string {
  return nodes.map((node) => (typeof node === "string" ? node : plainText(node.children))).join("");
}

const entities: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  nbsp: "\u00a0",
  "#39": "'",
};

function withEntities(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|nbsp|#39);/g, (_entity, name: string) => entities[name] ?? "");
}
