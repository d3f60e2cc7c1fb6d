import { isFields, type Fields } from "@throughline/core/internal";
import { shownText } from "../as-text.ts";
import { textBlock } from "../block-messages.ts";

/** Cline stores Anthropic's blocks. Roo's newer version stores the parts of the AI SDK, so those are converted. */
export function blocksOf(content: unknown): readonly Fields[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return (content as readonly unknown[]).flatMap((part) => (isFields(part) ? blockOf(part) : textBlock(part)));
}

function blockOf(part: Fields): readonly Fields[] {
  switch (part["type"]) {
    case "tool-call":
      return [{ type: "tool_use", id: part["toolCallId"], name: part["toolName"], input: part["input"] ?? {} }];
    case "tool-result":
      return [resultOf(part)];
    case "reasoning":
      return thinkingOf(part);
    case "tool_result":
      return [structuredResult(part)];
    case "image":
      return "source" in part ? [part] : fileOf(part["image"] ?? part["data"], part["mediaType"], "image");
    case "file":
      // A file that a person mentioned: the program sends its text.
      if (typeof part["content"] === "string") return [{ type: "text", text: part["content"] }];
      return fileOf(part["data"], part["mediaType"], "document");
    default:
      return [part];
  }
}

const contentTypes: ReadonlySet<unknown> = new Set(["text", "image", "file"]);

/**
 * Newer tools answer with any value, which the program sends as JSON. Its images go out as images, so a mark stands in
 * their place.
 */
function structuredResult(part: Fields): Fields {
  const { content } = part;
  if (typeof content === "string" || content === undefined) return part;
  const parts = Array.isArray(content) ? (content as readonly unknown[]) : null;
  if (parts?.every((one) => isFields(one) && contentTypes.has(one["type"])) === true)
    return { ...part, content: parts.filter(isFields).flatMap(blockOf) };
  const images: Fields[] = [];
  const text = JSON.stringify(content, (_name, value: unknown) => {
    const found = isFields(value) && value["type"] === "image" ? blockOf(value) : [];
    images.push(...found);
    return found.length > 0 ? "[image]" : value;
  });
  return { ...part, content: [{ type: "text", text }, ...images] };
}

const failedOutputs: ReadonlySet<unknown> = new Set(["error-text", "error-json", "execution-denied"]);
/** Roo may mark a failed call only by this text at the beginning of its result. */
const failedMark = "[ERROR]";

function resultOf({ toolCallId, output }: Fields): Fields {
  const { type, value } = isFields(output) ? output : { type: "text", value: output };
  const content = Array.isArray(value)
    ? blocksOf(value)
    : typeof value === "string"
      ? value
      : (JSON.stringify(value) ?? "");
  const isFailed =
    failedOutputs.has(type) || (typeof content === "string" && content.trimStart().startsWith(failedMark));
  return { type: "tool_result", tool_use_id: toolCallId, content, ...(isFailed ? { is_error: true } : {}) };
}

function thinkingOf({ text, providerOptions }: Fields): readonly Fields[] {
  const own = isFields(providerOptions) ? providerOptions["anthropic"] : null;
  const { signature, redactedData } = isFields(own) ? own : {};
  if (typeof redactedData === "string") return [{ type: "redacted_thinking", data: redactedData }];
  const thinking = shownText(text);
  if (typeof signature === "string" && signature !== "") return [{ type: "thinking", thinking, signature }];
  return thinking === "" ? [] : [{ type: "thinking", thinking }];
}

function fileOf(data: unknown, mediaType: unknown, kind: "image" | "document"): readonly Fields[] {
  if (typeof data !== "string" || data === "") return [];
  const inside = /^data:([^,;]{1,200});base64,/.exec(data.slice(0, 250));
  if (inside !== null)
    return [{ type: kind, source: { type: "base64", media_type: inside[1], data: data.slice(inside[0].length) } }];
  if (/^https?:/.test(data)) return [{ type: kind, source: { type: "url", url: data } }];
  const media = typeof mediaType === "string" ? mediaType : kind === "image" ? "image/png" : "application/pdf";
  return [{ type: kind, source: { type: "base64", media_type: media, data } }];
}
