import { hasErrorCode, type SessionRef, type SessionStore, type StoredRecord } from "@throughline/core";
import {
  createWorkSlices,
  fewerSteps,
  type FileReference,
  fileReferencesOf,
  isFields,
  isFileReference,
} from "@throughline/core/internal";

/** A larger file stays a reference, which the file of the other program reports as left out. */
const mostInlineBytes = 32_000_000;

type Block = Readonly<Record<string, unknown>>;

/**
 * Puts the bytes of stored files into the records that refer to them, because no other program reads our files. Images
 * and documents have the blocks that imports give them.
 */
export async function withInlineFiles(
  store: SessionStore,
  ref: SessionRef,
  records: readonly StoredRecord[],
): Promise<readonly StoredRecord[]> {
  const { files } = store;
  if (files === undefined) return records;
  const slices = createWorkSlices();
  const inline: StoredRecord[] = [];
  for (const stored of records) {
    // The next step looks at the records too, so this one leaves little of a slice over.
    await slices.next(fewerSteps);
    inline.push(fileReferencesOf(stored.record).length === 0 ? stored : await withBlocks(store, ref, stored));
  }
  return inline;
}

async function withBlocks(store: SessionStore, ref: SessionRef, stored: StoredRecord): Promise<StoredRecord> {
  const { record } = stored;
  const { message } = record;
  if (!isFields(message) || !Array.isArray(message["content"])) return stored;
  const content: unknown[] = [];
  for (const block of message["content"] as readonly unknown[])
    content.push(isFileReference(block) ? await inlineBlock(store, ref, block) : block);
  return { ...stored, record: { ...record, message: { ...message, content } } };
}

async function inlineBlock(store: SessionStore, ref: SessionRef, block: FileReference): Promise<Block> {
  const { fileId, mediaType, name } = block;
  const file = await store.files?.stat(ref, fileId);
  if (file === undefined || file === null || file.bytes > mostInlineBytes) return block;
  const bytes = await readFile(store, ref, fileId);
  if (bytes === null) return block;
  const type = typeof mediaType === "string" ? mediaType : "application/octet-stream";
  const title = typeof name === "string" ? { title: name } : {};
  if (type.startsWith("image/")) return { type: "image", data: bytes.toString("base64"), mimeType: type };
  if (type.startsWith("text/"))
    return { type: "document", source: { type: "text", media_type: "text/plain", data: bytes.toString() }, ...title };
  return { type: "document", source: { type: "base64", media_type: type, data: bytes.toString("base64") }, ...title };
}

async function readFile({ files }: SessionStore, ref: SessionRef, id: string): Promise<Buffer | null> {
  try {
    return files === undefined ? null : Buffer.concat(await Array.fromAsync(files.get(ref, id)));
  } catch (error) {
    // The file was deleted meanwhile, or is damaged.
    if (hasErrorCode(error, "FILE_NOT_FOUND", "STORE_CORRUPT", "CODEC_FAILED")) return null;
    throw error;
  }
}
