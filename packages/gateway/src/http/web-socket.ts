import type { IncomingMessage } from "node:http";

/**
 * Returns whether a request asks for a WebSocket. A server may ignore any other protocol. Java's client asks for HTTP/2
 * this way in each request to an address without TLS.
 */
export function asksForWebSocket({ headers }: Pick<IncomingMessage, "headers">): boolean {
  const names = (headers.upgrade ?? "").split(",").map((name) => name.trim().toLowerCase());
  return names.includes("websocket");
}
