import { type Fields, isFields, type Steps } from "@throughline/core/internal";
import { imageTypeOf } from "./image-type.ts";
import { markdownTree } from "./markdown-tree.ts";
import type { RowOptions } from "./row-options.ts";
import { firstLines, plainBlock, sizeText } from "./text-blocks.ts";
import { element, type ViewElement, type ViewNode } from "./view-tree.ts";
import { visibleText } from "./visible-text.ts";

/** Lists the blocks of a content; a text alone is one block. Other values are left out. */
export function blocksOf(content: unknown): readonly Fields[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return Array.isArray(content) ? (content as readonly unknown[]).filter(isFields) : [];
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns prose, images and files of a message. */
export function* messageNodes(blocks: readonly Fields[], options: RowOptions): Steps<readonly ViewNode[]> {
  const nodes: ViewNode[] = [];
  for (const block of blocks)
    if (block["type"] === "text") nodes.push(...(yield* markdownTree(textOf(block["text"]))));
    else nodes.push(mediaNode(block, options));
  return nodes;
}

const resultLines = 20;

/** Returns the output of a tool as it is written, to 20 lines unless everything is shown. */
export function* outputNodes(blocks: readonly Fields[], options: RowOptions): Steps<readonly ViewNode[]> {
  const texts = blocks.filter(({ type }) => type === "text").map(({ text }) => textOf(text));
  const whole = texts.join("\n");
  const nodes: ViewNode[] = whole.trim() === "" ? [] : yield* cutBlock(whole, options);
  for (const block of blocks) if (block["type"] !== "text") nodes.push(mediaNode(block, options));
  return nodes;
}

export function* cutBlock(text: string, { level }: RowOptions, className: string = ""): Steps<ViewNode[]> {
  if (level === "full") return [yield* plainBlock(text, className)];
  const { text: shown, leftLines, leftCharacters } = firstLines(text, resultLines);
  if (leftCharacters === 0) return [yield* plainBlock(text.trimEnd(), className)];
  return [yield* plainBlock(shown.trimEnd(), className), cutNote(leftLines, leftCharacters)];
}

export function cutNote(leftLines: number, leftCharacters: number): ViewElement {
  const lines =
    leftLines > 0 ? `${leftLines.toLocaleString("en-US")} more ${leftLines === 1 ? "line" : "lines"}, ` : "";
  return element("div", [`… ${lines}${sizeText(leftCharacters)} not in this file`], { class: "more" });
}

/** Every block that is no text: images, files, and what a later version adds. */
function mediaNode(block: Fields, options: RowOptions): ViewElement {
  const { type } = block;
  if (type === "image") return imageNode(block, options);
  if (type === "file") return element("div", [visibleText(fileText(block))], { class: "media" });
  return element("div", [visibleText(`[${textOf(type) || "unknown"}]`)], { class: "media" });
}

function imageNode(block: Fields, { hasImages, imageBytes }: RowOptions): ViewElement {
  const source = isFields(block["source"]) ? block["source"] : {};
  const data = textOf(block["data"] ?? source["data"]);
  const stated = textOf(block["mimeType"] ?? source["media_type"]) || "unknown type";
  const bytes = data === "" ? (imageBytes?.(block) ?? null) : Math.floor((data.length * 3) / 4);
  const size = bytes === null ? "not stored" : sizeText(bytes);
  if (!hasImages || data === "")
    return element("div", [visibleText(`Image · ${stated} · ${size}`)], { class: "media" });
  const type = imageTypeOf(data);
  if (type === null)
    return element("div", [visibleText(`Image · ${stated} · ${size} · no PNG, JPEG, GIF or WebP`)], { class: "media" });
  return element("img", [], { src: `data:${type};base64,${data}`, alt: `Image, ${type}, ${size}` });
}

function fileText(block: Fields): string {
  const bytes = block["sizeBytes"] ?? block["bytes"] ?? block["size"];
  const facts = [
    textOf(block["name"]) || textOf(block["fileId"]),
    textOf(block["mimeType"]) || textOf(block["mediaType"]),
    typeof bytes === "number" ? sizeText(bytes) : "",
  ];
  return ["File", ...facts.filter((fact) => fact !== "")].join(" · ");
}
