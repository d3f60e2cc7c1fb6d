import type { AssistantMessage, ToolCallBlock } from "@throughline/core";
import { serializeRecord } from "@throughline/core/internal";
import type { SessionContent } from "./session-options.ts";

/** Reserves room for the parts of a record beside its content: id, times, usage, model and tool names. */
const otherBytes = 64 * 1024;
/** The text of an error is for people. The thrown error keeps the full text as its cause. */
const maxErrorCharacters = 4000;
/** Reserves room for the mark and the fields around a text. */
const markBytes = 512;

type Block = Readonly<Record<string, unknown>> & { readonly type: string };

/** Cuts a message of a model or a tool to the size of a record, and puts a mark in place of each cut part. */
export function fitReply(message: AssistantMessage, recordBytes: number): AssistantMessage {
  const { content, errorMessage } = message;
  const isLong = errorMessage !== undefined && errorMessage.length > maxErrorCharacters;
  const own = isLong ? { ...message, errorMessage: cutCharacters(errorMessage, maxErrorCharacters) } : message;
  const fitted = fitContent(content as SessionContent, recordBytes);
  return (fitted as unknown) === content ? own : { ...own, content: fitted as AssistantMessage["content"] };
}

/** Cuts the content of a reply or a result to the given bytes of a record. Content that fits is returned unchanged. */
export function fitContent(content: SessionContent, recordBytes: number): SessionContent {
  const mostBytes = Math.max(recordBytes - otherBytes, markBytes * 2);
  if (bytesOf(content) <= mostBytes) return content;
  if (typeof content === "string") return cutText(content, mostBytes);
  const blocks = content as readonly Block[];
  const sizes = blocks.map(bytesOf);
  let left = sizes.reduce((sum, size) => sum + size + 1, 0) - mostBytes;
  const fitted: Block[] = [...blocks];
  // The largest blocks are cut first, so that blocks of usual size stay whole.
  const order = sizes.map((_, index) => index).toSorted((one, other) => (sizes[other] ?? 0) - (sizes[one] ?? 0));
  for (const index of order) {
    const [block, size] = [blocks[index], sizes[index] ?? 0];
    if (left <= 0 || block === undefined || size <= markBytes) break;
    const cut = cutBlock(block, Math.max(size - left - markBytes, markBytes));
    fitted[index] = cut;
    left -= size - bytesOf(cut);
  }
  return (left <= 0 ? fitted : firstBlocks(fitted, mostBytes - markBytes)) as SessionContent;
}

/** Thousands of small blocks may be too large together. The first ones that fit are kept, followed by a mark. */
function firstBlocks(blocks: readonly Block[], mostBytes: number): readonly Block[] {
  let bytes = 0;
  const count = blocks.findIndex((block) => (bytes += bytesOf(block) + 1) > mostBytes);
  const kept = blocks.slice(0, count < 0 ? blocks.length : count);
  return [...kept, textBlock(`[${blocks.length - kept.length} more parts are left out: a record holds no more.]`)];
}

function cutBlock(block: Block, mostBytes: number): Block {
  if (block.type === "text" && typeof block["text"] === "string") return textBlock(cutText(block["text"], mostBytes));
  if (block.type === "thinking" && typeof block["thinking"] === "string")
    // The signature covers the whole thinking, so it is invalid for a cut one.
    return { type: "thinking", thinking: cutText(block["thinking"], mostBytes) };
  // A block is plain JSON; the interface of a tool call has no index signature.
  if (block.type === "toolCall") return cutCall(block as unknown as ToolCallBlock, mostBytes) as unknown as Block;
  return textBlock(
    `[A part of type ${JSON.stringify(block.type.slice(0, 60))} is left out: it has ${bytesOf(block)} bytes.]`,
  );
}

/** A call with cut arguments must not run. Its `partialJson` marks the arguments as incomplete. */
function cutCall(call: ToolCallBlock, mostBytes: number): ToolCallBlock {
  const json = call.partialJson ?? JSON.stringify(call.arguments);
  const { id, name } = call;
  return {
    type: "toolCall",
    id: id.slice(0, 1000),
    name: name.slice(0, 1000),
    arguments: {},
    partialJson: cutText(json, mostBytes),
  };
}

function textBlock(text: string): Block {
  return { type: "text", text };
}

/** Finds the longest beginning that fits, slice by slice, so that each character is measured only a few times. */
function cutText(text: string, mostBytes: number): string {
  let at = 0;
  let left = mostBytes - markBytes;
  for (let step = 65_536; step > 0;) {
    const slice = text.slice(at, at + step);
    const bytes = bytesOf(slice);
    if (slice !== "" && bytes <= left) {
      at += slice.length;
      left -= bytes;
    } else step = Math.floor(step / 2);
  }
  return cutCharacters(text, at);
}

function cutCharacters(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most).toWellFormed()}\n[${text.length - most} of ${text.length} characters are left out here: the text is too long to be kept whole.]`;
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(serializeRecord(value));
}
