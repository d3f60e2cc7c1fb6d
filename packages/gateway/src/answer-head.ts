import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { RebuiltCall } from "./guard.ts";
import { responseHeaders, withoutSecret } from "./raw-headers.ts";

export interface AddedHeaders {
  readonly session: string | null;
  readonly call: string | null;
  readonly guard: RebuiltCall | null;
  readonly addedMs: number;
  /** Holds the server's key, which must not reach the client; see `responseHeaders`. */
  readonly secret: string | null;
}

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
  // Node must not add a Date header, because the headers already have the provider's.
  response.sendDate = false;
  const { statusCode = 502, statusMessage = "" } = answer;
  const reason = withoutSecret(statusMessage, secret);
  response.writeHead(statusCode, reasonForm.test(reason) ? reason : STATUS_CODES[statusCode], headers);
  // Writing an empty Buffer sends the head as Latin-1, which keeps the provider's bytes. `flushHeaders` would encode it
  // as UTF-8.
  response.write(Buffer.alloc(0));
}

/** Node throws for other bytes in a status message, although its client parser accepts them. */
const reasonForm = /^[\t\x20-\x7e\x80-\xff]*$/;
