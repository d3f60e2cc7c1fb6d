import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { ThroughlineError } from "@throughline/core";

/** Larger than any file that this program or a person writes into the home. */
export const mostFileBytes = 33_554_432;

export interface BoundedFileOptions {
  /** What a message calls it, before the word file. */
  readonly what: string;
  readonly mostBytes: number;
  readonly remedy?: string;
}

/**
 * The text of a file that is read whole. A pipe may never end, and a device does not: neither is waited for, and no file
 * fills the memory.
 * @throws {ThroughlineError} FILE_UNREADABLE for what is no regular file or larger; what the system says otherwise
 */
export function readBoundedFile(path: string, { what, mostBytes, remedy }: BoundedFileOptions): string {
  const refused = (why: string, more: { readonly remedy?: string } = {}): ThroughlineError => {
    const message = `The ${what} file ${JSON.stringify(path)} ${why}.`;
    return new ThroughlineError("FILE_UNREADABLE", message, { ...more, details: { path } });
  };
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw refused("is not a regular file");
    if (stats.size > mostBytes)
      throw refused(
        `has ${stats.size} bytes; a ${what} has at most ${mostBytes}`,
        remedy === undefined ? {} : { remedy },
      );
    const bytes = Buffer.alloc(stats.size);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(descriptor, bytes, length, bytes.length - length, length);
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(descriptor);
  }
}
