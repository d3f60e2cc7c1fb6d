import { type Fields, isFields } from "./json-object.ts";

const fileIdForm = /^[0-9a-f]{64}$/;

/** Returns whether a value has the form of a file's id: the SHA-256 of its bytes in 64 small hex digits. */
export function isFileId(value: unknown): value is string {
  return typeof value === "string" && fileIdForm.test(value);
}

const none: readonly never[] = [];

/** Holds a block that refers to a stored file. Its writer may have stated any other field, or none. */
export interface FileReference {
  readonly type: "file";
  readonly fileId: string;
  readonly [field: string]: unknown;
}

/** Holds a block that refers to a stored file, with the fields of `sessions.files` and no others. */
export interface FileBlock {
  readonly type: "file";
  /** States the id of the file, which is the SHA-256 of its bytes. */
  readonly fileId: string;
  /** States the media type that was given with the file; absent without one. */
  readonly mediaType?: string;
  /** States the name that was given with the file; absent without one. */
  readonly name?: string;
  /** Counts the bytes of the file; absent where the writer stated none. */
  readonly bytes?: number;
}

/** Returns a reference with its known fields; a field of another type is left out. */
export function fileBlock({ type, fileId, mediaType, name, bytes }: FileReference): FileBlock {
  return {
    type,
    fileId,
    ...(typeof mediaType === "string" ? { mediaType } : {}),
    ...(typeof name === "string" ? { name } : {}),
    ...(typeof bytes === "number" ? { bytes } : {}),
  };
}

/**
 * Returns the blocks of a record that refer to stored files: blocks `{ type: "file", fileId }` of its message. A block
 * of another program that holds its bytes is none.
 */
export function fileReferencesOf(record: Fields): readonly FileReference[] {
  const message = record["message"];
  const content = isFields(message) ? message["content"] : record["content"];
  // Most content is a text, or one block of text.
  return Array.isArray(content) ? (content as readonly unknown[]).filter(isFileReference) : none;
}

/** Returns the ids of the stored files that a record refers to, each once. */
export function fileIdsOf(record: Fields): readonly string[] {
  const references = fileReferencesOf(record);
  return references.length === 0 ? none : [...new Set(references.map(({ fileId }) => fileId))];
}

/** Returns whether a block of a message refers to a stored file. */
export function isFileReference(block: unknown): block is FileReference {
  if (typeof block !== "object" || block === null) return false;
  const { type, fileId } = block as { readonly type?: unknown; readonly fileId?: unknown };
  return type === "file" && isFileId(fileId);
}
