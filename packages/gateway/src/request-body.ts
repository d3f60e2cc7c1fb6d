import type { IncomingMessage } from "node:http";
import type { BodyShare } from "./http/body-budget.ts";
import { readBody } from "./http/read-body.ts";
import type { BegunRequest } from "./relay.ts";

/** Limits a request body in bytes, because the body stays in memory until its call is stored. */
export const bodyBytes: number = 32 * 1024 * 1024;
/** Limits how long a request body may take to arrive. Clients upload images over slow connections. */
export const uploadMs: number = 300_000;
/** The share is released when the promise ends, because the body stays in memory until then. */
export interface HeldBody {
  share: BodyShare | null;
  until: Promise<unknown>;
}

/**
 * Multiplies the body size in the budget. Until the call is stored, a body exists as bytes, as a text and as the parts
 * of the text.
 */
export const bodyWeight = 3;

/** Reads the body of a request. @param upload receives each chunk as it arrives */
export async function bodyOf(request: IncomingMessage, upload: BegunRequest | null, share: BodyShare): Promise<Buffer> {
  const limits = { bodyBytes, bodyMs: uploadMs, jsonLevels: 0, jsonValues: 0 };
  const body = await readBody(request, limits, false, share, (piece) => upload?.write(piece));
  upload?.end();
  return body;
}

/** Returns the content encoding of a request, or null for a body that is sent as it is. */
export function encodingOf({ headers }: IncomingMessage): string | null {
  const encoding = headers["content-encoding"];
  return encoding === undefined || encoding === "identity" ? null : String(encoding);
}
