import type { FileReference } from "@throughline/core/internal";
import { plainMediaType, imageTypeOf } from "./media-source.ts";
import type { RepairedItem, ReportRepair } from "./repair.ts";
import type { ReplayRules } from "./replay-rules.ts";
import type { ReplayFile, ReplayImage, ReplayText } from "./replay-turn.ts";

interface Refusal {
  readonly because: string;
}

type Sent = ReplayFile | ReplayImage | ReplayText;

const mebibyte = 2 ** 20;

/** A longer text would fill the context of most models. */
const mostTextBytes = mebibyte;

/** The messages beside the files need room in the request, too. */
const roomForTextBytes = 2 * mebibyte;

/**
 * Replaces a reference by the file in the form that the provider takes: an image, a document or a text. A file that is
 * not sent becomes a line that says which file, and why.
 */
export function cleanStoredFile(
  block: FileReference,
  item: RepairedItem,
  rules: ReplayRules,
  report: ReportRepair,
): Sent {
  const sent = sentFile(block, rules);
  if ("type" in sent) return sent;
  const text = `[file ${describe(block)}: not sent: ${sent.because}]`;
  report("file-replaced", item, "file", text);
  return { type: "text", text };
}

function sentFile(block: FileReference, rules: ReplayRules): Sent | Refusal {
  if (rules.files === null) return { because: "its bytes are beside the records" };
  const refusal = refusalWithoutBytes(block, rules);
  if (refusal !== null) return refusal;
  const bytes = rules.files(block.fileId);
  if (bytes === undefined) return { because: "the files of this session are more than fit in memory" };
  if (bytes === null) return { because: "the store does not have it, or it is damaged" };
  const type = typeOf(bytes, plainMediaType(block["mediaType"]));
  if (type !== null && rules.imageTypes.has(type)) return image(bytes, type, rules);
  if (type !== null && rules.fileTypes.has(type)) return document(bytes, type, block, rules);
  if (type !== null && !isText(type) && type !== unknownType) return { because: `${receiver(rules)} takes no ${type}` };
  return text(bytes, block);
}

/** Returns whether the bytes of a file decide how it is sent. Of a video they need not be read. */
export function needsBytes(block: FileReference, rules: TakenFiles): boolean {
  return refusalWithoutBytes(block, { ...rules, target: null }) === null;
}

type TakenFiles = Pick<ReplayRules, "imageTypes" | "fileTypes" | "maxImageLength" | "maxFileBytes">;

function refusalWithoutBytes(block: FileReference, rules: TakenFiles & Pick<ReplayRules, "target">): Refusal | null {
  const type = plainMediaType(block["mediaType"]);
  const isImage = type !== null && rules.imageTypes.has(type);
  const isDocument = type !== null && rules.fileTypes.has(type);
  if (type !== null && type !== unknownType && !isImage && !isDocument && !isText(type))
    return { because: `${receiver(rules)} takes no ${type}` };
  const size = Number(block["bytes"]);
  const most = isImage ? ((rules.maxImageLength ?? Infinity) * 3) / 4 : rules.maxFileBytes;
  if (size > most)
    return { because: `${receiver(rules)} takes ${isImage ? "images" : "files"} of at most ${sizeText(most)}` };
  return null;
}

const unknownType = "application/octet-stream";

/** The first bytes decide, because a provider rejects a request whose file has another type than stated. */
function typeOf(bytes: Uint8Array, stated: string | null): string | null {
  const head = bytes.subarray(0, recognizedBytes);
  const imageType = imageTypeOf(base64(head));
  if (imageType !== null) return imageType;
  return hasPdfSign(head) ? pdf : stated;
}

/** The kinds of files that are recognized show themselves within these bytes. */
const recognizedBytes = 24;

function hasPdfSign(bytes: Uint8Array): boolean {
  return new TextDecoder("latin1").decode(bytes).includes("%PDF-");
}

const pdf = "application/pdf";

function isText(type: string): boolean {
  return type.startsWith("text/") || textTypes.has(type) || type.endsWith("+json") || type.endsWith("+xml");
}

const textTypes: ReadonlySet<string> = new Set([
  "application/json",
  "application/x-ndjson",
  "application/jsonl",
  "application/xml",
  "application/yaml",
  "application/x-yaml",
  "application/toml",
  "application/sql",
  "application/javascript",
  "application/typescript",
  "application/x-sh",
]);

function image(bytes: Uint8Array, type: string, rules: ReplayRules): Sent | Refusal {
  if (isKnownImage(type) && imageTypeOf(base64(bytes.subarray(0, recognizedBytes))) === null)
    return { because: `its bytes are not ${type}` };
  const length = base64Length(bytes);
  const { maxImageLength } = rules;
  if (maxImageLength !== null && length > maxImageLength)
    return { because: `${receiver(rules)} takes images of at most ${sizeText((maxImageLength * 3) / 4)}` };
  const full = takeRoom(length, rules);
  return full ?? { type: "image", source: { type: "base64", media_type: type, data: base64(bytes) } };
}

function isKnownImage(type: string): boolean {
  return /^image\/(?:png|jpeg|gif|webp)$/.test(type);
}

function document(bytes: Uint8Array, type: string, block: FileReference, rules: ReplayRules): Sent | Refusal {
  if (type === pdf && !hasPdfSign(bytes.subarray(0, 1024))) return { because: "its bytes are no PDF" };
  const { maxFileBytes } = rules;
  if (bytes.byteLength > maxFileBytes)
    return { because: `${receiver(rules)} takes files of at most ${sizeText(maxFileBytes)}` };
  const full = takeRoom(base64Length(bytes), rules);
  return (
    full ?? { type: "file", source: { type: "base64", media_type: type, data: base64(bytes) }, name: nameOf(block) }
  );
}

function text(bytes: Uint8Array, block: FileReference): Sent | Refusal {
  if (bytes.byteLength > mostTextBytes) return { because: `a text is sent up to ${sizeText(mostTextBytes)}` };
  const content = decoded(bytes);
  if (content === null) return { because: "its bytes are no text" };
  const name = nameOf(block);
  return { type: "text", text: name === null ? content || "(an empty file)" : `[${name}]\n${content}` };
}

function decoded(bytes: Uint8Array): string | null {
  try {
    const content = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return content.includes("\0") ? null : content;
  } catch {
    return null;
  }
}

/**
 * Counts the file against the request. The first files of the conversation come first, so that what was sent before is
 * sent again.
 */
function takeRoom(length: number, { room, maxRequestBytes, ...rules }: ReplayRules): Refusal | null {
  const most = maxRequestBytes - roomForTextBytes;
  if (room.taken + length > most) {
    const used = sizeText((room.taken * 3) / 4);
    return {
      because: `a request to ${receiver(rules)} has room for ${sizeText((most * 3) / 4)}, and the files before it take ${used}`,
    };
  }
  room.taken += length;
  return null;
}

function receiver({ target }: Pick<ReplayRules, "target">): string {
  return target?.provider ?? "the provider";
}

function base64Length(bytes: Uint8Array): number {
  return Math.ceil(bytes.byteLength / 3) * 4;
}

function nameOf(block: FileReference): string | null {
  const { name } = block;
  // A line feed or a bracket in a name must not look like the end of our own words.
  const clean =
    typeof name === "string"
      ? name
          .toWellFormed()
          .replace(/[\s[\]]+/g, " ")
          .trim()
          .slice(0, 200)
      : "";
  return clean === "" ? null : clean;
}

function describe(block: FileReference): string {
  const { bytes, fileId } = block;
  const size = typeof bytes === "number" && Number.isFinite(bytes) && bytes >= 0 ? sizeText(bytes) : null;
  const parts = [nameOf(block) ?? fileId.slice(0, 12), plainMediaType(block["mediaType"])?.slice(0, 100), size];
  return parts.filter((part) => part !== null && part !== undefined).join(", ");
}

function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Browsers have no `Buffer`. Node's is faster than `btoa`, and a file may have 100 MB. */
function base64(bytes: Uint8Array): string {
  const ofNode = (globalThis as { readonly Buffer?: typeof Buffer }).Buffer;
  if (ofNode !== undefined) return ofNode.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  const texts: string[] = [];
  for (let at = 0; at < bytes.length; at += bytesAtOnce)
    texts.push(btoa(String.fromCharCode(...bytes.subarray(at, at + bytesAtOnce))));
  return texts.join("");
}

/** A multiple of three gives base64 without padding. */
const bytesAtOnce = 3 * 4096;
