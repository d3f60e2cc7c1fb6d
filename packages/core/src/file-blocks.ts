import { isFields } from "./json-object.ts";
import type { SessionRecord } from "./record.ts";

const fileIdForm = /^[0-9a-f]{64}$/;

/** Returns whether a value has the form of a file's id: the SHA-256 of its bytes in 64 small hex digits. */
export function isFileId(value: unknown): value is string {
  return typeof value === "string" && fileIdForm.test(value);
}

const none: readonly string[] = [];

/**
 * Returns the ids of the stored files that the message of a record refers to, each once. A reference is a block
 * `{ type: "file", fileId }`; a block of another program that holds its bytes is none.
 */
export function fileIdsOf(record: SessionRecord): readonly string[] {
  const { message } = record;
  const content = isFields(message) ? message["content"] : record["content"];
  // Most content is a text, or one block of text.
  if (!Array.isArray(content)) return none;
  const references = (content as readonly unknown[]).filter(isFileReference);
  return references.length === 0 ? none : [...new Set(references.map(({ fileId }) => fileId))];
}

/** Returns whether a block of a message refers to a stored file. */
export function isFileReference(
  block: unknown,
): block is { readonly type: "file"; readonly fileId: string; readonly [field: string]: unknown } {
  if (typeof block !== "object" || block === null) return false;
  const { type, fileId } = block as { readonly type?: unknown; readonly fileId?: unknown };
  return type === "file" && isFileId(fileId);
}
