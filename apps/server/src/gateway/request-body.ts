import type { IncomingMessage } from "node:http";
import type { BodyShare } from "../http/body-budget.ts";
import { readBody } from "../http/read-body.ts";
import type { BegunRequest } from "./relay.ts";

/** The largest body of a request. */
export const bodyBytes: number = 32 * 1024 * 1024;
/** How long the body of a request may take to arrive: images go over slow lines. */
export const uploadMs: number = 300_000;
/** The share of the budget of bodies that a request holds, and the promise that ends it. */
export interface HeldBody {
  share: BodyShare | null;
  until: Promise<unknown>;
}

/** A body is held as its bytes, as a text and in the parts of that, until its call is stored. */
export const bodyWeight = 3;

/** The body of a request. @param upload is given each piece as it comes */
export async function bodyOf(request: IncomingMessage, upload: BegunRequest | null, share: BodyShare): Promise<Buffer> {
  const limits = { bodyBytes, bodyMs: uploadMs, jsonLevels: 0, jsonValues: 0 };
  const body = await readBody(request, limits, false, share, (piece) => upload?.write(piece));
  upload?.end();
  return body;
}
