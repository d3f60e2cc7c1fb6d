import type { Duplex } from "node:stream";
import { STATUS_CODES, type Server, type ServerResponse } from "node:http";
import { randomBytes } from "node:crypto";
import type { ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { problemOf } from "@throughline/http-api/internal";

/** Answers requests that Node could not parse: too large, too late, or not HTTP. */
export function answerClientErrors(http: Server): { readonly began: (response: ServerResponse) => void } {
  const running = new WeakMap<Duplex, Set<ServerResponse>>();
  http.on("clientError", (error, socket) => {
    // While an earlier request on the connection still runs, the client would take the refusal for the answer to that
    // request.
    const others = Array.from(running.get(socket) ?? []).filter(({ req, headersSent }) => headersSent || req.complete);
    if (others.length === 0) answerClientError(error, socket);
    else socket.destroy();
  });
  return {
    began(response) {
      const { socket } = response.req;
      const responses = running.get(socket) ?? new Set();
      running.set(socket, responses.add(response));
      response.once("close", () => responses.delete(response));
    },
  };
}

function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === "ECONNRESET") return void socket.destroy();
  const { status, body } = problemOf(refusalOf(error), randomBytes(9).toString("base64url"), (value) => value);
  const text = JSON.stringify(body);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "connection: close",
    "cache-control: no-store",
    "x-content-type-options: nosniff",
    "content-type: application/problem+json",
    `content-length: ${Buffer.byteLength(text)}`,
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${text}`);
}

function refusalOf({ code }: NodeJS.ErrnoException): ThroughlineError {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return refused("REQUEST_TIMEOUT", "The request did not arrive in time.");
  if (code === "HPE_HEADER_OVERFLOW")
    return refused("REQUEST_TOO_LARGE", "The headers of the request are larger than the server takes.", {
      status: 431,
    });
  return refused("INPUT_INVALID", "What was sent is not an HTTP request.");
}
