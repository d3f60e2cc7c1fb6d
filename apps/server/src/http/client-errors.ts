import type { Duplex } from "node:stream";
import { STATUS_CODES } from "node:http";
import { randomBytes } from "node:crypto";
import type { ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/store";
import { problemOf } from "./problem.ts";

/** Answers bytes that Node could not read as a request: too many, too late, or not HTTP. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
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
