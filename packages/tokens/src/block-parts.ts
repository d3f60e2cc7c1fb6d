import { isFields, isFileReference, type Fields, type FileReference } from "@throughline/core/internal";

export interface MediaPart {
  readonly kind: "image" | "file" | "opaque";
  /** Is null when the message holds only a link or an id. */
  readonly base64: string | null;
  readonly isLowDetail: boolean;
  /** Counts the bytes of a file of which the message holds the id only. */
  readonly bytes?: number;
}

/**
 * Collects the parts of one content block that a provider sends to the model. Accepts the record format and every
 * provider's wire format.
 */
export function blockParts(block: unknown, texts: string[], media: MediaPart[]): void {
  if (typeof block === "string") texts.push(block);
  if (!isFields(block)) return;
  switch (block["type"]) {
    case "text":
    case "input_text":
    case "output_text":
    case "refusal":
      return addText(block["text"] ?? block["refusal"], texts);
    case "thinking":
    case "redacted_thinking":
      return addThinking(block, texts, media);
    case "toolCall":
    case "toolUse":
    case "functionCall":
    case "tool_use":
    case "function_call":
      return addCall(block["name"], block["arguments"] ?? block["input"], texts);
    case "tool_result":
    case "function_call_output":
      return addNested(block["content"] ?? block["output"], texts, media);
    case "reasoning":
      return addNested(block["summary"], texts, media);
    case "image":
    case "image_url":
    case "input_image":
      return void media.push({ kind: "image", base64: imageData(block), isLowDetail: hasLowDetail(block) });
    case "document":
    case "document_url":
    case "file":
    case "input_file":
      return addFile(block, texts, media);
    case "unknown":
      return addUnknown(block["block"], texts, media);
    case undefined:
      return addGeminiPart(block, texts, media);
    default:
      return addText(JSON.stringify({ ...block, cache_control: undefined }), texts);
  }
}

const fileTypes: ReadonlySet<unknown> = new Set(["document", "file"]);

/** A neutral block of type `unknown` carries the original block. Only renderings know files, so they are among these. */
function addUnknown(block: unknown, texts: string[], media: MediaPart[]): void {
  if (isFields(block) && fileTypes.has(block["type"])) blockParts(block, texts, media);
  else addText(JSON.stringify(block ?? null), texts);
}

function addText(text: unknown, texts: string[]): void {
  if (typeof text === "string") texts.push(text);
}

function addCall(name: unknown, given: unknown, texts: string[]): void {
  addText(name, texts);
  addText(typeof given === "string" ? given : JSON.stringify(given ?? {}), texts);
}

function addNested(content: unknown, texts: string[], media: MediaPart[]): void {
  if (typeof content === "string") texts.push(content);
  else if (Array.isArray(content)) for (const block of content) blockParts(block, texts, media);
}

function addThinking(block: Fields, texts: string[], media: MediaPart[]): void {
  const opaque = block["data"] ?? block["thinkingSignature"] ?? block["signature"];
  const isRedacted = block["type"] === "redacted_thinking" || block["redacted"] === true;
  if (isRedacted && typeof opaque === "string") media.push({ kind: "opaque", base64: opaque, isLowDetail: false });
  else addText(block["thinking"], texts);
}

function addFile(block: Fields, texts: string[], media: MediaPart[]): void {
  if (isFileReference(block)) return void media.push(referencePart(block));
  const source = isFields(block["source"]) ? block["source"] : isFields(block["file"]) ? block["file"] : block;
  addText(block["title"], texts);
  if (source["type"] === "text") return addText(source["data"], texts);
  if (source["type"] === "content") return addNested(source["content"], texts, media);
  const data = source["data"] ?? source["file_data"] ?? dataOf(block["document_url"]);
  media.push({ kind: "file", base64: typeof data === "string" ? data : null, isLowDetail: false });
}

/** A reference states the size of its file, whose bytes are not in the record. */
function referencePart({ mediaType, bytes }: FileReference): MediaPart {
  const type = typeof mediaType === "string" ? mediaType : "";
  const kind = type.startsWith("image/") ? "image" : "file";
  return { kind, base64: null, bytes: typeof bytes === "number" && bytes > 0 ? bytes : 0, isLowDetail: false };
}

function dataOf(link: unknown): string | null {
  return typeof link === "string" && link.startsWith("data:") ? link.slice(link.indexOf(",") + 1) : null;
}

function imageData(block: Fields): string | null {
  const source = isFields(block["source"]) ? block["source"] : block;
  if (typeof source["data"] === "string") return source["data"];
  const link = isFields(block["image_url"]) ? block["image_url"]["url"] : block["image_url"];
  return typeof link === "string" && link.startsWith("data:") ? link : null;
}

function hasLowDetail(block: Fields): boolean {
  const owner = isFields(block["image_url"]) ? block["image_url"] : block;
  return owner["detail"] === "low";
}

/** Gemini's parts, and Bedrock's, have no `type`. The field that is present determines the kind of the part. */
function addGeminiPart(part: Fields, texts: string[], media: MediaPart[]): void {
  const { functionCall, functionResponse, inlineData, image, document } = part;
  addText(part["text"], texts);
  if (isFields(functionCall)) addCall(functionCall["name"], functionCall["args"], texts);
  if (isFields(functionResponse)) addCall(functionResponse["name"], functionResponse["response"], texts);
  if (isFields(inlineData)) {
    const isImage = String(inlineData["mimeType"]).startsWith("image/");
    const base64 = typeof inlineData["data"] === "string" ? inlineData["data"] : null;
    media.push({ kind: isImage ? "image" : "file", base64, isLowDetail: false });
  }
  if (isFields(image)) media.push({ kind: "image", base64: bedrockBytes(image), isLowDetail: false });
  if (isFields(document)) media.push({ kind: "file", base64: bedrockBytes(document), isLowDetail: false });
}

function bedrockBytes({ source }: Fields): string | null {
  const bytes = isFields(source) ? source["bytes"] : null;
  return typeof bytes === "string" ? bytes : null;
}
