import {
  hasErrorCode,
  type RandomSource,
  type SessionRef,
  type SessionStore,
  type StoredRecord,
} from "@throughline/core";
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

interface InlineFilesOptions {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  readonly random: RandomSource;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Puts the bytes of stored files into the records that refer to them, because no other program reads our files. Images
 * and documents have the blocks that imports give them.
 *
 * The writer of a format is given a mark in the place of the base64 text, because the files of a session may be more than
 * fits in memory. `written` puts the bytes in the place of each mark while they are read.
 */
export class InlineFiles {
  readonly #options: InlineFilesOptions;
  /** Begins every mark. No text of a session can hold it, and it looks like base64. */
  readonly #sign: string;
  readonly #fileIds: string[] = [];

  constructor(options: InlineFilesOptions) {
    this.#options = options;
    this.#sign = options.random.uuid().replaceAll("-", "");
  }

  async records(records: readonly StoredRecord[]): Promise<readonly StoredRecord[]> {
    if (this.#options.store.files === undefined) return records;
    const slices = createWorkSlices();
    const inline: StoredRecord[] = [];
    for (const stored of records) {
      // The next step looks at the records too, so this one leaves little of a slice over.
      await slices.next(fewerSteps);
      inline.push(fileReferencesOf(stored.record).length === 0 ? stored : await this.#withBlocks(stored));
    }
    return inline;
  }

  async #withBlocks(stored: StoredRecord): Promise<StoredRecord> {
    const { record } = stored;
    const { message } = record;
    if (!isFields(message) || !Array.isArray(message["content"])) return stored;
    const content: unknown[] = [];
    for (const block of message["content"] as readonly unknown[])
      content.push(isFileReference(block) ? await this.#inlineBlock(block) : block);
    return { ...stored, record: { ...record, message: { ...message, content } } };
  }

  async #inlineBlock(block: FileReference): Promise<Block> {
    const { store, ref, signal } = this.#options;
    const { fileId, mediaType, name } = block;
    const file = await store.files?.stat(ref, fileId);
    if (store.files === undefined || file == null || file.bytes > mostInlineBytes) return block;
    const type = typeof mediaType === "string" ? mediaType : "application/octet-stream";
    const isText = type.startsWith("text/");
    const pieces = await piecesOf(store.files.get(ref, fileId, { signal }), isText);
    if (pieces === null) return block;
    const title = typeof name === "string" ? { title: name } : {};
    if (type.startsWith("image/")) return { type: "image", data: this.#markOf(fileId), mimeType: type };
    if (!isText)
      return { type: "document", source: { type: "base64", media_type: type, data: this.#markOf(fileId) }, ...title };
    // A format may quote a text once more, so the writer needs the text itself.
    const data = Buffer.concat(pieces).toString();
    return { type: "document", source: { type: "text", media_type: "text/plain", data }, ...title };
  }

  #markOf(fileId: string): string {
    const number = this.#fileIds.push(fileId) - 1;
    return `${this.#sign}${number.toString(16).padStart(numberLength, "0")}`;
  }

  /** Yields what was written, with the base64 text of each file in the place of its mark. */
  async *written(piece: Uint8Array): AsyncGenerator<Uint8Array> {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    let from = 0;
    for (let at = this.#markAfter(bytes, 0); at >= 0; at = this.#markAfter(bytes, from)) {
      if (at > from) yield bytes.subarray(from, at);
      from = at + this.#sign.length + numberLength;
      yield* this.#base64(Number.parseInt(bytes.toString("latin1", at + this.#sign.length, from), 16));
    }
    if (from < bytes.length || from === 0) yield bytes.subarray(from);
  }

  #markAfter(bytes: Buffer, from: number): number {
    return this.#fileIds.length === 0 ? -1 : bytes.indexOf(this.#sign, from, "latin1");
  }

  async *#base64(number: number): AsyncGenerator<Uint8Array> {
    const { store, ref, signal } = this.#options;
    let rest: Buffer = Buffer.alloc(0);
    for await (const piece of store.files?.get(ref, this.#fileIds[number] ?? "", { signal }) ?? []) {
      const bytes = Buffer.concat([rest, piece]);
      // Three bytes are four characters, so what is over waits for the next piece.
      const whole = bytes.length - (bytes.length % 3);
      rest = bytes.subarray(whole);
      yield Buffer.from(bytes.toString("base64", 0, whole), "latin1");
    }
    yield Buffer.from(rest.toString("base64"), "latin1");
  }
}

const numberLength = 8;

/**
 * Reads a file to its end, because one that turns out to be damaged while it is written would end the export.
 * @returns the pieces that are kept; null when the file is damaged or gone
 */
async function piecesOf(file: AsyncIterable<Uint8Array>, isKept: boolean): Promise<readonly Uint8Array[] | null> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of file) if (isKept) pieces.push(piece);
    return pieces;
  } catch (error) {
    // The file was deleted meanwhile, or is damaged.
    if (hasErrorCode(error, "FILE_NOT_FOUND", "STORE_CORRUPT", "CODEC_FAILED")) return null;
    throw error;
  }
}
