import { isFields, type Fields } from "@throughline/core/internal";

/** Locates a value in a message list: the index of the message, then the keys down to the value. */
export interface SlotPlace {
  readonly index: number;
  readonly path: readonly (string | number)[];
}

/** Holds one text of a tool result. A result may consist of several texts. */
export interface ResultSlot extends SlotPlace {
  /** Holds the id of the answered call; null for providers without call ids. */
  readonly callId: string | null;
  readonly text: string;
}

export interface MediaSlot extends SlotPlace {
  readonly sizeBytes: number;
  /** Holds the block that replaces the attachment, in the shape of its message. */
  readonly placeholder: unknown;
}

const mediaTypes: ReadonlySet<unknown> = new Set([
  "image",
  "image_url",
  "input_image",
  "document",
  "file",
  "input_file",
]);

/**
 * Finds the texts of all tool results. It reads Anthropic's `tool_result` blocks, `tool` messages of chat completions
 * and Ollama, `function_call_output` items of Responses, and `toolResult` messages of the record format.
 */
export function findResults(messages: readonly unknown[]): ResultSlot[] {
  return messages.flatMap((message, index) => (isFields(message) ? resultsOf(message, index) : []));
}

function resultsOf(message: Fields, index: number): ResultSlot[] {
  if (message["type"] === "function_call_output")
    return textsIn(message["output"], { index, path: ["output"] }, stringOf(message["call_id"]));
  if (message["role"] === "tool" || message["role"] === "toolResult") {
    const callId = stringOf(message["tool_call_id"] ?? message["toolCallId"]);
    return textsIn(message["content"], { index, path: ["content"] }, callId);
  }
  const blocks = Array.isArray(message["content"]) ? (message["content"] as readonly unknown[]) : [];
  return blocks.flatMap((block, at) =>
    isFields(block) && block["type"] === "tool_result"
      ? textsIn(block["content"], { index, path: ["content", at, "content"] }, stringOf(block["tool_use_id"]))
      : [],
  );
}

function textsIn(content: unknown, { index, path }: SlotPlace, callId: string | null): ResultSlot[] {
  if (typeof content === "string") return [{ index, path, callId, text: content }];
  if (!Array.isArray(content)) return [];
  return content.flatMap((part: unknown, at) =>
    isFields(part) && typeof part["text"] === "string"
      ? [{ index, path: [...path, at, "text"], callId, text: part["text"] }]
      : [],
  );
}

/** Finds all images and files, in the order in which they were sent. The oldest ones are removed first. */
export function findMedia(messages: readonly unknown[]): MediaSlot[] {
  return messages.flatMap((message, index) => {
    if (!isFields(message)) return [];
    const images = Array.isArray(message["images"]) ? (message["images"] as readonly unknown[]) : [];
    const beside = images.map((image, at): MediaSlot => {
      const sizeBytes = typeof image === "string" ? image.length : 0;
      return { index, path: ["images", at], sizeBytes, placeholder: noteOf("image", sizeBytes) };
    });
    const type = message["role"] === undefined || message["type"] === "message" ? "input_text" : "text";
    return [
      ...beside,
      ...mediaIn(
        message["content"] ?? message["output"],
        index,
        [message["content"] === undefined ? "output" : "content"],
        type,
      ),
    ];
  });
}

function mediaIn(content: unknown, index: number, path: readonly (string | number)[], textType: string): MediaSlot[] {
  if (!Array.isArray(content)) return [];
  return content.flatMap((block: unknown, at): MediaSlot[] => {
    if (!isFields(block)) return [];
    const here = [...path, at];
    if (block["type"] === "tool_result") return mediaIn(block["content"], index, [...here, "content"], "text");
    if (!mediaTypes.has(block["type"])) return [];
    const sizeBytes = (JSON.stringify(block) ?? "").length;
    const type = String(block["type"]).startsWith("input_") ? "input_text" : textType;
    const text = noteOf(String(block["type"]).replace(/^input_|_url$/g, ""), sizeBytes);
    return [{ index, path: here, sizeBytes, placeholder: { type, text } }];
  });
}

function noteOf(what: string, sizeBytes: number): string {
  return `[${what} of ${sizeBytes} bytes left out: the request was too large]`;
}

/**
 * Copies only the path to the value, so that unchanged messages stay the same objects. `createSizeGauge` relies on
 * this.
 */
export function replaceAt(messages: readonly unknown[], place: SlotPlace, value: unknown): readonly unknown[] {
  return messages.with(place.index, setAt(messages[place.index], place.path, value));
}

/** Ollama's images are bare strings in a list. The note therefore goes into the text of the message. */
export function replaceMedia(messages: readonly unknown[], slot: MediaSlot): readonly unknown[] {
  if (slot.path[0] !== "images") return replaceAt(messages, slot, slot.placeholder);
  const message = messages[slot.index] as Fields;
  const images = (message["images"] as readonly unknown[]).filter((_, at) => at !== slot.path[1]);
  const { images: _, ...rest } = message;
  const content = [stringOf(message["content"]), String(slot.placeholder)].filter((text) => text).join("\n");
  return messages.with(slot.index, { ...rest, content, ...(images.length > 0 ? { images } : {}) });
}

function setAt(value: unknown, [key, ...rest]: readonly (string | number)[], replacement: unknown): unknown {
  if (key === undefined) return replacement;
  if (Array.isArray(value)) return value.with(Number(key), setAt(value[Number(key)], rest, replacement));
  return { ...(value as Fields), [key]: setAt((value as Fields)[key], rest, replacement) };
}

function stringOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
