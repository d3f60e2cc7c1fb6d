import { isFields, type Fields } from "@throughline/core/internal";
import { shownText } from "../as-text.ts";
import { blockBodies, hasSignature } from "../block-messages.ts";
import type { MessageList, ReadElement, ReadFrame } from "../message-list.ts";
import { fieldsWithout, type RecordBody } from "../unit-records.ts";

const knownFields: ReadonlySet<string> = new Set(["row", "id", "role", "created", "content"]);

/** Reads the messages of a session. A message that the model no longer gets becomes a side record. */
export class GooseMessages implements MessageList {
  readonly name = "goose";
  readonly sessionId = null;
  readonly #entry = new Map<string, unknown>();

  get entry(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(this.#entry);
  }

  frame(): ReadFrame {
    return { bodies: [] };
  }

  element(value: Fields): ReadElement {
    const { role, created: time, content, metadata, id } = value;
    if (role === undefined) this.#note(value);
    if (role !== "user" && role !== "assistant") return { bodies: [], isUnreadable: role !== undefined, time };
    const seen = isFields(metadata) ? metadata["agentVisible"] : undefined;
    const bodies = Array.isArray(content) ? messageBodies(role, content as readonly unknown[], value) : null;
    return { bodies: bodies ?? [], isUnreadable: bodies === null, time, id, isHidden: seen === false };
  }

  #note({ working_dir: folder, description }: Fields): void {
    if (typeof folder === "string" && folder !== "") this.#entry.set("cwd", folder);
    if (typeof description !== "string" || description.trim() === "") return;
    this.#entry.set("title", description.trim());
    this.#entry.set("titleBy", "import");
  }
}

function messageBodies(
  role: "user" | "assistant",
  content: readonly unknown[],
  value: Fields,
): readonly RecordBody[] | null {
  const blocks = joinedThinking(content.filter(isFields).flatMap(blockOf));
  if (blocks.length === 0) return [];
  // A reply may list results of tools, which belong into messages of the user.
  const isReply = (block: Fields): boolean => role === "assistant" && block["type"] !== "tool_result";
  const runs = [
    { role: "assistant", content: blocks.filter(isReply) },
    { role: "user", content: blocks.filter((block) => !isReply(block)) },
  ].filter((run) => run.content.length > 0);
  const bodies = blockBodies(runs, {}, role === "assistant" && hasSignature(blocks));
  const native = fieldsWithout(value, knownFields);
  const more = Object.keys(native).length === 0 ? {} : { native };
  return bodies?.map((body, index) => (index === 0 ? { ...body, ...more } : body)) ?? null;
}

/** The program stores thinking in streamed pieces of a word or two. A signature ends the thinking. */
function joinedThinking(blocks: readonly Fields[]): readonly Fields[] {
  const joined: Fields[] = [];
  let words: string[] = [];
  for (const [at, block] of blocks.entries()) {
    if (block["type"] !== "thinking") {
      joined.push(block);
      continue;
    }
    words.push(String(block["thinking"]));
    const isOpen = block["signature"] === undefined && blocks[at + 1]?.["type"] === "thinking";
    if (isOpen) continue;
    joined.push({ ...block, thinking: words.join("") });
    words = [];
  }
  return joined;
}

/** A piece for the screen only gives no block. */
function blockOf(piece: Fields): readonly Fields[] {
  const { type, text, data, mimeType, id, thinking, signature } = piece;
  switch (type) {
    case "text":
      return textOf(text);
    case "image":
      return typeof data === "string" ? [{ type, source: { type: "base64", media_type: mimeType, data } }] : [];
    case "thinking":
      return [{ type, thinking: shownText(thinking), ...(signature === "" ? {} : { signature }) }];
    case "redactedThinking":
      return typeof data === "string" ? [{ type: "redacted_thinking", data }] : [];
    case "toolRequest":
    case "frontendToolRequest":
      return callOf(id, piece["toolCall"]);
    case "toolResponse":
      return resultOf(id, piece["toolResult"]);
    default:
      return [];
  }
}

/** A call that the program could not read has no name. The program does not send it either. */
function callOf(id: unknown, call: unknown): readonly Fields[] {
  const { value } = isFields(call) ? call : {};
  if (!isFields(value) || typeof value["name"] !== "string" || typeof id !== "string") return [];
  return [{ type: "tool_use", id, name: value["name"], input: isFields(value["arguments"]) ? value["arguments"] : {} }];
}

function resultOf(id: unknown, result: unknown): readonly Fields[] {
  if (typeof id !== "string" || !isFields(result)) return [];
  const { value, error } = result;
  if (typeof error === "string") return [{ type: "tool_result", tool_use_id: id, content: error, is_error: true }];
  // Older versions have the list without an object around it.
  const inner = isFields(value) ? value : { content: value };
  const pieces = Array.isArray(inner["content"]) ? (inner["content"] as readonly unknown[]) : null;
  const content = pieces?.flatMap(resultPiece) ?? textOf(inner["content"]);
  return [{ type: "tool_result", tool_use_id: id, content, ...(inner["isError"] === true ? { is_error: true } : {}) }];
}

function resultPiece(piece: unknown): readonly Fields[] {
  if (!isFields(piece)) return textOf(piece);
  if (piece["type"] !== "resource") return blockOf(piece);
  return textOf(isFields(piece["resource"]) ? piece["resource"]["text"] : null);
}

function textOf(value: unknown): readonly Fields[] {
  const text = shownText(value);
  return text === "" ? [] : [{ type: "text", text }];
}
