import type { SessionStore } from "@throughline/core";
import {
  assertArgument,
  assertKnownOptions,
  type FileScope,
  type GetFileOptions,
  onePiece,
  optionKinds,
  type OptionTable,
  refused,
  storeFiles,
} from "@throughline/core/internal";
import type { FileCache } from "./file-contents.ts";

/** Describes the content of a file that is put. */
interface PutSessionFile {
  /** States the media type, such as `application/pdf`. @default not stated: the first bytes decide what is sent */
  readonly mediaType?: string | undefined;
  /** States the name that a person gave the file. @default not stated */
  readonly name?: string | undefined;
  /** Limits the bytes of the file. @default the store's `limits.fileBytes`, 100 MB */
  readonly maxBytes?: number | undefined;
  /** Aborts the put, which then keeps nothing and throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Describes a file that was put. */
interface SessionFile {
  /** States the id, by which records refer to the file. */
  readonly id: string;
  /** Counts the bytes. */
  readonly bytes: number;
  /** States the SHA-256 of the bytes in hex. */
  readonly sha256: string;
  /** Holds the block that sends the file in a message or a tool's result. */
  readonly block: {
    readonly type: "file";
    /** States the id of the file. */
    readonly fileId: string;
    /** States the media type that was given; absent without one. */
    readonly mediaType?: string;
    /** States the name that was given; absent without one. */
    readonly name?: string;
    /** Counts the bytes. */
    readonly bytes: number;
  };
}

/** Keeps files for the sessions of one agent. */
export interface SessionFiles {
  /**
   * Keeps bytes, or a stream of bytes, and resolves once they are durable. The same bytes are kept once.
   * @throws {ThroughlineError} FILE_TOO_LARGE, INPUT_INVALID, CAPABILITY_UNSUPPORTED for a store that keeps no files, and
   *   what the store and the stream throw
   * @example
   * const file = await sessions.files.put(await readFile("report.pdf"), {
   *   mediaType: "application/pdf",
   *   name: "report.pdf",
   * });
   * await session.runTurn([{ type: "text", text: "Summarize the report." }, file.block]);
   */
  put(content: Uint8Array | Blob | AsyncIterable<Uint8Array>, options?: PutSessionFile): Promise<SessionFile>;
  /**
   * Yields the bytes of a file piece by piece.
   * @throws {ThroughlineError} FILE_NOT_FOUND, INPUT_INVALID, CAPABILITY_UNSUPPORTED, and what the store throws
   */
  get(id: string, options?: GetFileOptions): AsyncIterable<Uint8Array>;
  /**
   * Deletes a file, also when messages refer to it: the model then reads that it is not sent. The purge of a session
   * deletes its files by itself.
   * @returns whether there was a file
   * @throws {ThroughlineError} CAPABILITY_UNSUPPORTED, and what the store throws
   */
  delete(id: string): Promise<boolean>;
}

const { filledText, integer, signal } = optionKinds;
const putTable: OptionTable<PutSessionFile> = {
  mediaType: filledText,
  name: filledText,
  maxBytes: integer({ min: 0 }),
  signal,
};

/** Creates the files of an agent over its store. */
export function createSessionFiles(store: SessionStore, scope: FileScope, cache: FileCache): SessionFiles {
  return {
    async put(content, options = {}) {
      assertKnownOptions<PutSessionFile>("files.put", options, putTable);
      const { mediaType, name, ...rest } = options;
      const { id, bytes } = await storeFiles(store).put(scope, piecesOf(content), rest);
      const stated = { ...(mediaType === undefined ? {} : { mediaType }), ...(name === undefined ? {} : { name }) };
      return { id, bytes, sha256: id, block: { type: "file", fileId: id, ...stated, bytes } };
    },
    async *get(id, options) {
      assertArgument("files.get", "id", id, optionKinds.text);
      yield* storeFiles(store).get(scope, id, options);
    },
    async delete(id) {
      assertArgument("files.delete", "id", id, optionKinds.text);
      cache.forget(scope, id);
      return storeFiles(store).delete(scope, id);
    },
  };
}

/** @throws {ThroughlineError} INPUT_INVALID */
function piecesOf(content: Uint8Array | Blob | AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  if (content instanceof Uint8Array) return onePiece(content);
  if (content instanceof Blob) return content.stream();
  if (typeof (content as Partial<AsyncIterable<Uint8Array>> | null)?.[Symbol.asyncIterator] === "function")
    return content;
  throw refused("INPUT_INVALID", "files.put(): `content` must be bytes, a Blob, or a stream of bytes.", {
    argument: "content",
  });
}
