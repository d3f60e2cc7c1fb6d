/** Describes an object of a `FileStore`. */
export interface FileObject {
  /** States the name. */
  readonly name: string;
  /** Counts the bytes that are kept. */
  readonly bytes: number;
  /** States when the object was written, in UTC milliseconds of the clock of the storage. */
  readonly modifiedMs: number;
}

/** Sets the signal of an operation of a `FileStore`. */
export interface FileStoreOptions {
  /** Aborts the operation, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Keeps bytes under names, outside of a store of sessions. A `FileStore` knows nothing of sessions and files:
 * `withFileStore` decides which names there are and when one goes.
 *
 * A finished write, copy or removal is seen by every later read and list of any process. Names consist of ASCII letters,
 * digits, `.`, `_`, `-` and `/`, and have at most 400 characters.
 */
export interface FileStore {
  /**
   * Writes an object, and resolves once it is durable. Nothing is visible under the name before that, also when the
   * process ends. It reads a piece of the content when it needs it, and holds a bounded part of it in memory.
   * @throws {ThroughlineError} STORE_UNREACHABLE, ABORTED, and what the content throws
   */
  write(name: string, content: AsyncIterable<Uint8Array>, options?: FileStoreOptions): Promise<void>;
  /**
   * Copies an object to another name, at once or not at all.
   * @throws {ThroughlineError} STORE_UNREACHABLE, FILE_NOT_FOUND, ABORTED
   */
  copy(from: string, to: string, options?: FileStoreOptions): Promise<void>;
  /**
   * Yields the bytes `from` to `to`, without `to`, piece by piece. A connection that breaks is opened again where it
   * broke.
   * @throws {ThroughlineError} STORE_UNREACHABLE, FILE_NOT_FOUND, ABORTED
   */
  read(
    name: string,
    range: FileStoreOptions & { readonly from: number; readonly to: number },
  ): AsyncIterable<Uint8Array>;
  /**
   * Returns up to `limit` objects whose names begin with `prefix` and follow `after`, in the order of their characters.
   * @throws {ThroughlineError} STORE_UNREACHABLE, ABORTED
   */
  list(
    prefix: string,
    options: FileStoreOptions & { readonly after?: string | undefined; readonly limit: number },
  ): Promise<readonly FileObject[]>;
  /** Removes an object; a name without one changes nothing. @throws {ThroughlineError} STORE_UNREACHABLE */
  remove(name: string): Promise<void>;
  /**
   * Removes the parts of writes that began before a time, in UTC milliseconds, and never ended. Absent when a write
   * leaves none.
   * @throws {ThroughlineError} STORE_UNREACHABLE
   */
  removeUnfinished?(prefix: string, beforeMs: number): Promise<void>;
}
