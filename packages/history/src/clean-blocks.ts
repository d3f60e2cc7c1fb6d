import { isFields, isFileReference, type Fields } from "@throughline/core/internal";
import { cleanStoredFile } from "./clean-stored-file.ts";
import { readMedia } from "./media-source.ts";
import type { NeutralBlock, NeutralImage } from "./neutral-message.ts";
import type { RepairedItem, ReportRepair } from "./repair.ts";
import type { ReplayRules } from "./replay-rules.ts";
import type { ReplayFile, ReplayImage, ReplayRaw, ReplayText, ReplayUserBlock } from "./replay-turn.ts";

/**
 * Converts a block of a user message or a tool result into a block that the provider accepts. Returns null for a blank
 * text.
 */
export function cleanUserBlock(
  block: NeutralBlock,
  place: "user" | "result",
  item: RepairedItem,
  rules: ReplayRules,
  report: ReportRepair,
): ReplayUserBlock | null {
  if (block.type === "text") {
    const text = cleanText(block.text, item, report);
    if (text === null) return null;
    // Most blocks need no change. Reusing them saves time and memory.
    return text === block.text && block.signature === undefined ? (block as ReplayText) : { type: "text", text };
  }
  if (block.type === "image") return cleanImage(block, item, rules, report);
  if (block.type === "unknown") return cleanUnknown(block.block, rules.carriedBlocks[place], item, rules, report);
  return marker(block.type, item, report);
}

const spaceCode = 0x20;
const deleteCode = 0x7f;

function isBlankText(text: string): boolean {
  // Most texts start with a visible ASCII character. The check avoids `trim()`, which would copy the text.
  return !(text.charCodeAt(0) > spaceCode && text.charCodeAt(0) < deleteCode) && !/\S/.test(text);
}

/** Checks whether a text is not blank and JSON can carry all of it. */
export function isCleanText(text: string): boolean {
  return !isBlankText(text) && text.isWellFormed();
}

/** Replaces characters that JSON cannot carry. Returns null for a blank text. */
export function cleanText(text: string, item: RepairedItem, report: ReportRepair): string | null {
  if (isCleanText(text)) return text;
  if (isBlankText(text)) {
    report("empty-text-removed", item, text);
    return null;
  }
  report("lone-surrogate-replaced", item, null);
  return text.toWellFormed();
}

/**
 * Handles a block of an unknown type. It sends the block unchanged if the provider accepts the type, reads it if it is
 * a file, and replaces it with a marker otherwise.
 */
export function cleanUnknown(
  block: Fields,
  taken: ReadonlySet<string>,
  item: RepairedItem,
  rules: ReplayRules,
  report: ReportRepair,
): ReplayUserBlock {
  const type = typeof block["type"] === "string" ? block["type"] : "";
  if (isFileReference(block)) return cleanStoredFile(block, item, rules, report);
  if (taken.has(type) && isComplete(type, block)) {
    return { type: "raw", block: wellFormed(block) as Fields } satisfies ReplayRaw;
  }
  if (type === "document" || type === "file") return cleanFile(type, block, item, rules, report);
  return marker(type, item, report);
}

/**
 * Checks whether a block has the fields that its provider requires. A failed compaction has null for a summary, never
 * an absent field.
 */
export function isComplete(type: string, block: Fields): boolean {
  const { content, encrypted_content: opaque } = block;
  if (type === "compaction")
    return content !== "" && [content, opaque].some((part) => typeof part === "string" || part === null);
  return type !== "document" || isFields(block["source"]);
}

function marker(type: string, item: RepairedItem, report: ReportRepair): ReplayText {
  const name = /^[A-Za-z0-9_.-]{1,64}$/.test(type) ? type : "unknown";
  const text = `[block of type ${name} left out]`;
  report("unknown-block-replaced", item, type, text);
  return { type: "text", text };
}

function cleanFile(
  type: string,
  block: Fields,
  item: RepairedItem,
  rules: ReplayRules,
  report: ReportRepair,
): ReplayFile | ReplayText {
  const source = isFields(block["source"]) ? block["source"] : block;
  const mediaType = source["media_type"] ?? source["mimeType"];
  const given = block["title"] ?? block["filename"] ?? block["name"];
  const name = typeof given === "string" && given.trim() !== "" ? given.toWellFormed() : null;
  const { data } = source;
  // A document of plain text can be sent to any provider as text.
  if (source["type"] === "text" && typeof data === "string" && data.trim() !== "") {
    report("file-replaced", item, type, "text");
    return { type: "text", text: (name === null ? data : `[${name}]\n${data}`).toWellFormed() };
  }
  const found = readMedia(source, mediaType, data, { types: rules.fileTypes, links: rules.fileLinks, maxLength: null });
  if ("type" in found) return { type: "file", source: found, name };
  const kind = typeof mediaType === "string" ? mediaType.toWellFormed() : "of an unknown kind";
  const text = `[file left out: ${name === null ? kind : `${name}, ${kind}`}]`;
  report("file-replaced", item, type, text);
  return { type: "text", text };
}

function cleanImage(
  image: NeutralImage,
  item: RepairedItem,
  rules: ReplayRules,
  report: ReportRepair,
): ReplayImage | ReplayText {
  const { source, data, mimeType } = image;
  const mediaType = source === null ? mimeType : source["media_type"];
  const bytes = source === null ? data : source["data"];
  const { imageTypes: types, imageLinks: links, maxImageLength: maxLength } = rules;
  const found = readMedia(source ?? {}, mediaType, bytes, { types, links, maxLength });
  if ("type" in found) {
    if (found.type === "base64" && (found.media_type !== mediaType || found.data !== bytes))
      report("image-rewritten", item, typeof mediaType === "string" ? mediaType : null, found.media_type);
    return { type: "image", source: found };
  }
  const kind = typeof mediaType === "string" ? mediaType.toWellFormed() : "of an unknown kind";
  const text = `[image left out: ${[kind, found.because].filter((part) => part !== null).join(", ")}]`;
  report("image-replaced", item, "image", text);
  return { type: "text", text };
}

/** Replaces lone surrogates with U+FFFD. Returns the same value if every string in it is well-formed. */
export function wellFormed(value: unknown): unknown {
  if (!hasLoneSurrogate(value)) return value;
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  const entries = Object.entries(value as object).map(
    ([key, field]) => [key.toWellFormed(), wellFormed(field)] as const,
  );
  return Object.fromEntries(entries);
}

/** JSON cannot carry a lone surrogate, so a provider would reject the request. */
export function hasLoneSurrogate(value: unknown): boolean {
  if (typeof value === "string") return !value.isWellFormed();
  if (typeof value !== "object" || value === null) return false;
  for (const key in value) {
    if (!key.isWellFormed() || hasLoneSurrogate((value as Record<string, unknown>)[key])) return true;
  }
  return false;
}
