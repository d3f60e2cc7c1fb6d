import { createHash } from "node:crypto";
import { abortedBefore, refused } from "@throughline/core/internal";

/** Counts the bytes of a chunk before it is encoded. Every chunk of a file but the last has as many. */
export const fileChunkBytes: number = 256 * 1024;

interface ReceiveOptions {
  readonly maxBytes: number;
  readonly signal: AbortSignal | undefined;
}

/** Holds what is known of a file once all of it has arrived. */
export interface ReceivedFile {
  readonly id: string;
  readonly bytes: number;
}

/**
 * Yields the content in chunks of `fileChunkBytes`, and returns what the file is. It reads no further piece before the
 * caller asks for the next chunk, so that a fast sender waits for a slow disk.
 * @throws {ThroughlineError} FILE_TOO_LARGE, INPUT_INVALID for a piece that is not bytes, ABORTED
 */
export async function* receiveChunks(
  content: AsyncIterable<Uint8Array>,
  { maxBytes, signal }: ReceiveOptions,
): AsyncGenerator<Uint8Array, ReceivedFile> {
  const hash = createHash("sha256");
  // The chunk is reused: a file of 100 MB must not cost 100 MB of memory.
  const chunk = Buffer.alloc(fileChunkBytes);
  let [bytes, filled] = [0, 0];
  for await (const piece of content) {
    assertPiece(piece);
    bytes += piece.byteLength;
    if (bytes > maxBytes) throw fileTooLarge(maxBytes);
    hash.update(piece);
    for (let at = 0; at < piece.byteLength;) {
      const part = piece.subarray(at, at + fileChunkBytes - filled);
      chunk.set(part, filled);
      at += part.byteLength;
      filled += part.byteLength;
      if (filled < fileChunkBytes) continue;
      if (signal?.aborted === true) throw abortedBefore("the file was kept", signal);
      yield Uint8Array.prototype.slice.call(chunk);
      filled = 0;
    }
  }
  if (signal?.aborted === true) throw abortedBefore("the file was kept", signal);
  if (filled > 0) yield Uint8Array.prototype.slice.call(chunk, 0, filled);
  return { id: hash.digest("hex"), bytes };
}

/** @throws {ThroughlineError} INPUT_INVALID for a piece that is not bytes */
export function assertPiece(piece: unknown): void {
  if (!(piece instanceof Uint8Array))
    throw refused("INPUT_INVALID", "The content of a file is bytes: each piece must be a Uint8Array.");
}

/** Creates the error of content that is longer than a bound. */
export function fileTooLarge(maxBytes: number): Error {
  return refused("FILE_TOO_LARGE", `The file has more than ${maxBytes} bytes.`, { limit: maxBytes });
}
