import type { IncomingMessage, ServerResponse } from "node:http";
import { continueBody } from "@throughline/gateway/internal";
import type { HeaderMap } from "./answer.ts";
import type { Exchange, HostRequest } from "./exchange.ts";
import type { Problem } from "./problem.ts";
import { mustCloseUnread } from "./close-unread.ts";
import { writeProblem } from "./write-answer.ts";

/** Wraps a request of Node's own server, which the routes read and answer as it is. */
export function nodeExchange(
  request: IncomingMessage,
  response: ServerResponse,
  { caller, address }: HostRequest = {},
): Exchange {
  return {
    request,
    response,
    // Few requests need it, and the system is asked for it.
    get address() {
      return address ?? request.socket.remoteAddress ?? "";
    },
    isBodyRead: request.readableDidRead,
    caller,
    continueBody: () => continueBody(request, response),
    refuse: (problem, headers) => refuse(request, response, problem, headers),
  };
}

/** Limits how much is read of a chunked body, so that a client near its end can still read the answer. */
const endlessBytes = 1024 * 1024;
const lingerMs = 1000;
/**
 * Limits how long the rest of a short body may take after the answer, so that a slow client does not hold the
 * connection.
 */
const restMs = 10_000;

function refuse(request: IncomingMessage, response: ServerResponse, problem: Problem, headers: HeaderMap): void {
  if (request.destroyed && !request.complete) return void response.destroy();
  const isUnread = !request.complete && mustCloseUnread(request, problem);
  writeProblem(response, problem, { ...headers, ...(isUnread ? { connection: "close" } : {}) });
  if (!isUnread) {
    response.end();
    request.resume();
    // The whole body has arrived, so the connection can serve the next request.
    if (request.complete) return;
    // The rest of a short body arrives soon. Without this timer the connection would wait as long as an upload may
    // take.
    const { socket } = request;
    const late = setTimeout(() => socket.destroy(), restMs).unref();
    for (const event of ["end", "close"] as const) request.once(event, () => clearTimeout(late));
    return;
  }
  // The client may still be writing. Closing now would reset the connection and lose the answer, so the close is
  // delayed.
  const isEndless = request.headers["content-length"] === undefined;
  let read = 0;
  request.on("data", ({ length }: Buffer) => {
    read += length;
    if (isEndless && read > endlessBytes) request.pause();
  });
  for (const event of ["end", "close"] as const) request.once(event, () => void response.end());
  request.resume();
  const { socket } = request;
  setTimeout(() => socket.destroy(), lingerMs).unref();
}
