import type { FileScope, ListedFile, StoredFile } from "@throughline/core/internal";
import type { Awaitable } from "./awaitable.ts";

/** Limits the time of an upload, in milliseconds. One that has not ended after it belongs to a process that was killed. */
export const uploadEndsMs: number = 24 * 60 * 60 * 1000;

/** Names the chunks of a file while it arrives, and afterwards. */
export interface FileUpload {
  /** Identifies the upload; no other upload of the store ever has this id. */
  readonly id: string;
  /** Names the namespace and the agent of the file. */
  readonly scope: FileScope;
}

/** Describes a file that a backend keeps. */
export interface KeptFile extends StoredFile {
  /** States the id of the upload whose chunks hold the bytes. */
  readonly upload: string;
}

/**
 * Keeps the chunks of files. A backend decides nothing. Chunks have numbers from 0 on, and all but the last hold
 * `fileChunkBytes` bytes before they are encoded.
 */
export interface FileBackend {
  /** Stores a chunk of an upload, which is not visible before `publish`. */
  addChunk(upload: FileUpload, number: number, bytes: Uint8Array): Awaitable<void>;
  /**
   * Makes an upload the file of its scope in one commit, as durable as the store's default. When the scope has the file
   * already, its time is renewed and the upload is left for `drop`.
   * @returns whether the chunks of the upload are the file now.
   */
  publish(upload: FileUpload, file: StoredFile): Awaitable<boolean>;
  /** Removes the chunks of an upload that is no file. */
  drop(upload: FileUpload): Awaitable<void>;
  /** Returns the file, or null. */
  find(scope: FileScope, id: string): Awaitable<KeptFile | null>;
  /** Returns a chunk, or null when there is none. */
  chunk(upload: FileUpload, number: number): Awaitable<Uint8Array | null>;
  /** Deletes a file with its chunks, and returns whether there was one. */
  remove(scope: FileScope, id: string): Awaitable<boolean>;
  /** Returns up to `limit` files and missing files whose ids follow `afterId`, in order of id. */
  list(scope: FileScope, afterId: string, limit: number): Awaitable<readonly ListedFile[]>;
}
