import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { RebuiltCall } from "./guard.ts";
import { responseHeaders } from "./raw-headers.ts";

/** What the answer to a call says of it. */
export interface AddedHeaders {
  readonly session: string | null;
  readonly call: string | null;
  readonly guard: RebuiltCall | null;
  readonly addedMs: number;
  /** See `responseHeaders`. */
  readonly secret: string | null;
}

/** Writes the head of an answer: that of the provider, and the headers of ours. */
export function writeHead(
  response: ServerResponse,
  answer: IncomingMessage,
  { session, call, guard, addedMs, secret }: AddedHeaders,
): void {
  const headers = responseHeaders(answer, secret);
  if (session !== null) headers.push("throughline-session", session);
  if (call !== null) headers.push("throughline-call", call);
  if (guard !== null)
    headers.push("throughline-guard", `${guard.action}; call=${guard.recordId}${guard.isAnswer ? "" : "; refused"}`);
  headers.push("server-timing", `throughline;dur=${addedMs.toFixed(2)}`);
  // The provider's own date stands among the headers.
  response.sendDate = false;
  const { statusCode = 502, statusMessage = "" } = answer;
  response.writeHead(statusCode, reasonForm.test(statusMessage) ? statusMessage : STATUS_CODES[statusCode], headers);
  // With bytes, the head goes out as the bytes that came. `flushHeaders` would write it as UTF-8.
  response.write(Buffer.alloc(0));
}

/** What a server may write behind a status; the parser of a client takes more. */
const reasonForm = /^[\t\x20-\x7e\x80-\xff]*$/;
