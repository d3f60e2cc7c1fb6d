import { Buffer } from "node:buffer";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setImmediate as nextTick, setTimeout as wait } from "node:timers/promises";

export interface PieceOptions {
  readonly eventDelayMs: number;
  /** Undefined writes one event per piece. */
  readonly chunkBytes: readonly number[] | undefined;
  readonly signal: AbortSignal;
}

function cutBytes(bytes: Buffer, sizes: readonly number[]): readonly Buffer[] {
  const parts: Buffer[] = [];
  for (let start = 0; start < bytes.length;) {
    const size = Math.max(1, sizes[parts.length % sizes.length] ?? 1);
    parts.push(bytes.subarray(start, start + size));
    start += size;
  }
  return parts;
}

/** Waits. Returns false when the client disconnected in the meantime. */
export async function pause(delayMs: number, signal: AbortSignal): Promise<boolean> {
  if (delayMs > 0 && !signal.aborted)
    await wait(delayMs, undefined, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  return !signal.aborted;
}

/**
 * Writes the texts with delays between the pieces. Returns false when the client disconnected before the last piece.
 */
export async function writePieces(
  response: ServerResponse,
  texts: readonly string[],
  { eventDelayMs, chunkBytes, signal }: PieceOptions,
): Promise<boolean> {
  const parts = chunkBytes ? cutBytes(Buffer.from(texts.join("")), chunkBytes) : texts.map((text) => Buffer.from(text));
  for (const [index, part] of parts.entries()) {
    if (index > 0 && !(await pause(eventDelayMs, signal))) return false;
    if (signal.aborted) return false;
    if (!response.write(part)) await Promise.race([once(response, "drain"), once(response, "close")]);
    // Sends each piece in its own write, so that the client sees the boundary.
    await nextTick();
  }
  return true;
}
