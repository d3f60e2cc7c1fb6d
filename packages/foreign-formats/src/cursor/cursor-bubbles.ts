import { isFields, type Fields } from "@throughline/core/internal";
import { shownText } from "../as-text.ts";
import { blockBodies } from "../block-messages.ts";
import type { UnitPlace } from "../foreign-format.ts";
import { partOf } from "../mapped-messages.ts";
import type { MessageList, ReadElement, ReadFrame } from "../message-list.ts";
import type { RecordBody } from "../unit-records.ts";

/** Reads bubbles. A bubble is a question or a piece of a reply, and the pieces up to the next result form one reply. */
export class CursorBubbles implements MessageList {
  readonly name = "cursor";
  readonly sessionId = null;
  readonly entry = {};
  /** The next piece belongs to this reply; null when the next piece begins one. */
  #replyId: string | null = null;

  frame(): ReadFrame {
    return { bodies: [] };
  }

  element(value: Fields, { line }: UnitPlace): ReadElement {
    const { bubbleId: id, bubble, unlisted } = value;
    if (!isFields(bubble)) return { bodies: [], isUnreadable: true, id };
    const { type, createdAt: time } = bubble;
    const isHidden = unlisted === true;
    if (type === 1) {
      this.#replyId = null;
      const content = [...textOf(bubble["text"]), ...imagesOf(bubble["images"])];
      const bodies = content.length === 0 ? [] : blockBodies([{ role: "user", content }], {}, false);
      return { bodies: bodies ?? [], isUnreadable: bodies === null, id, time, isHidden };
    }
    if (type !== 2) return { bodies: [], isUnreadable: true, id, time };
    return { ...this.#piece(bubble, isHidden ? null : `reply-${line}`), id, time, isHidden };
  }

  /** @param replyId the id of a reply that begins here; null for a piece outside the conversation */
  #piece(bubble: Fields, replyId: string | null): Pick<ReadElement, "bodies" | "isUnreadable"> {
    const { thinking, text, toolFormerData: tool, modelInfo } = bubble;
    const call = isFields(tool) ? callOf(tool) : null;
    const content = [...thinkingOf(thinking), ...textOf(text), ...(call === null ? [] : [call.use])];
    if (content.length === 0) return { bodies: [], isUnreadable: isFields(tool) };
    const model = isFields(modelInfo) ? modelInfo["modelName"] : undefined;
    // The value "default" is a setting of the program and not a model.
    const author = model === "default" ? {} : { model };
    const reply = blockBodies([{ role: "assistant", content }], author, false);
    if (reply === null) return { bodies: [], isUnreadable: true };
    const result = call?.result ?? null;
    const results = result === null ? [] : (blockBodies([{ role: "user", content: [result] }], {}, false) ?? []);
    return { bodies: [...this.#parts(reply, replyId), ...results], isUnreadable: false };
  }

  #parts(reply: readonly RecordBody[], replyId: string | null): readonly RecordBody[] {
    if (replyId === null) return reply;
    const isFurther = this.#replyId !== null;
    const id = (this.#replyId ??= replyId);
    const hasCall = reply.some(({ message }) => JSON.stringify(message).includes('"toolCall"'));
    if (hasCall) this.#replyId = null;
    return reply.map((body) => partOf(body, id, isFurther));
  }
}

function textOf(value: unknown): readonly Fields[] {
  const text = shownText(value);
  return text === "" ? [] : [{ type: "text", text }];
}

function thinkingOf(thinking: unknown): readonly Fields[] {
  const text = shownText(isFields(thinking) ? thinking["text"] : null);
  return text !== "" ? [{ type: "thinking", thinking: text }] : [];
}

function imagesOf(images: unknown): readonly Fields[] {
  const listed = Array.isArray(images) ? (images as readonly unknown[]).filter(isFields) : [];
  return listed.flatMap(({ data, mimeType }) =>
    typeof data === "string" && typeof mimeType === "string"
      ? [{ type: "image", source: { type: "base64", media_type: mimeType, data } }]
      : [],
  );
}

interface ToolPiece {
  readonly use: Fields;
  /** The result is null while the tool runs. */
  readonly result: Fields | null;
}

function callOf({ toolCallId: id, name, params, rawArgs, result, status }: Fields): ToolPiece | null {
  if (typeof id !== "string" || id === "" || typeof name !== "string" || name === "") return null;
  const input = [params, rawArgs].map(jsonIn).find(isFields) ?? {};
  const use = { type: "tool_use", id, name, input };
  if (status !== "completed" && status !== "error" && status !== "cancelled") return { use, result: null };
  // Cursor may have cleared the tool's result.
  const content = shownText(result);
  const isFailed = status !== "completed";
  return { use, result: { type: "tool_result", tool_use_id: id, content, ...(isFailed ? { is_error: true } : {}) } };
}

function jsonIn(text: unknown): unknown {
  if (typeof text !== "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    // Cursor may still be writing the text, so it is incomplete.
    return null;
  }
}
