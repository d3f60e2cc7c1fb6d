import type { SourcedRecord } from "@throughline/core/internal";
import { refused } from "@throughline/core/internal";

/** Limits the bytes of a block in one answer. */
export const mostBlockBytes: number = 256 * 1024;

interface BlockPart {
  readonly kind: "block";
  readonly id: string;
  readonly seq: number;
  readonly block: number;
  readonly type: string;
  readonly totalBytes: number;
  readonly from: number;
  readonly text: string;
  readonly nextFrom: number | null;
  readonly [member: string]: unknown;
}

/**
 * Returns a part of a message block. The part starts and ends between characters.
 * @throws {ThroughlineError} INPUT_INVALID for a block that the record does not have, and a byte behind its end
 */
export function blockPart(
  { record, id, seq }: SourcedRecord,
  block: number,
  { from: asked = 0, bytes: most = mostBlockBytes }: { readonly from?: number; readonly bytes?: number },
): BlockPart {
  const { type, text } = blockOf(record, block);
  const whole = Buffer.from(text);
  if (asked > whole.length)
    throw refused("INPUT_INVALID", "from lies behind the end of the block.", { totalBytes: whole.length });
  const from = characterStart(whole, asked);
  const end = characterStart(whole, Math.min(from + most, whole.length));
  const nextFrom = end < whole.length ? end : null;
  const place = { id, seq, block, type, totalBytes: whole.length };
  return { kind: "block", ...place, from, text: whole.toString("utf8", from, end), nextFrom };
}

/** Moves back to the first byte of a UTF-8 character, so that a part never splits a character. */
export function characterStart(bytes: Buffer, at: number): number {
  let start = at;
  while (start > 0 && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--;
  return start;
}

function blockOf(record: SourcedRecord["record"], at: number): { readonly type: string; readonly text: string } {
  const content = (record["message"] as { readonly content?: unknown } | null | undefined)?.content;
  const blocks: readonly unknown[] = typeof content === "string" ? [content] : Array.isArray(content) ? content : [];
  const block = blocks[at];
  if ((typeof block !== "object" && typeof block !== "string") || block === null)
    throw refused("INPUT_INVALID", "The record has no such block.", { block: at, blocks: blocks.length });
  return blockText(block);
}

/** Returns the text of a block, whose bytes its parts count. A block without text is serialized as JSON. */
export function blockText(block: unknown): { readonly type: string; readonly text: string } {
  if (typeof block === "string") return { type: "text", text: block };
  const { type, text, thinking, data } = (block ?? {}) as Readonly<Record<string, unknown>>;
  const said = [text, thinking, data].find((value) => typeof value === "string" && value !== "");
  return {
    type: typeof type === "string" ? type : "unknown",
    text: typeof said === "string" ? said : (JSON.stringify(block) ?? ""),
  };
}
