import { Buffer } from "node:buffer";
import type { IncomingMessage } from "node:http";

export interface ReadBody {
  /** Is empty when the body was too large. */
  readonly bytes: Uint8Array;
  readonly isTooLarge: boolean;
}

/** Reads to the end even if the body is too large, because a client that is still sending would not see the answer. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<ReadBody> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= maxBytes) chunks.push(chunk);
  }
  const isTooLarge = size > maxBytes;
  return { bytes: isTooLarge ? new Uint8Array() : Buffer.concat(chunks), isTooLarge };
}
