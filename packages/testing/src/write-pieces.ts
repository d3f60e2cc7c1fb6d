import { Buffer } from "node:buffer";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setImmediate as nextTick, setTimeout as wait } from "node:timers/promises";

/** How a body is written. */
export interface PieceOptions {
  readonly eventDelayMs: number;
  /** Undefined: one event a piece. */
  readonly chunkBytes: readonly number[] | undefined;
  readonly signal: AbortSignal;
}

/** The bytes in pieces of the given sizes, used in turn. */
function cutBytes(bytes: Buffer, sizes: readonly number[]): readonly Buffer[] {
  const parts: Buffer[] = [];
  for (let start = 0; start < bytes.length;) {
    const size = Math.max(1, sizes[parts.length % sizes.length] ?? 1);
    parts.push(bytes.subarray(start, start + size));
    start += size;
  }
  return parts;
}

/** Waits; gives false when the client went away meanwhile. */
export async function pause(delayMs: number, signal: AbortSignal): Promise<boolean> {
  if (delayMs > 0 && !signal.aborted)
    await wait(delayMs, undefined, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  return !signal.aborted;
}

/** Writes the texts; gives false when the client went away before the last of them. Delays are between pieces. */
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
    // Lets the piece leave on its own, so that the client sees the border.
    await nextTick();
  }
  return true;
}
