import type { IncomingMessage } from "node:http";

/**
 * Whether a request asks for a WebSocket. HTTP lets a server ignore any other protocol that a client would like. Java's client
 * asks for HTTP/2 in this way with each request to an address without TLS.
 */
export function asksForWebSocket({ headers }: IncomingMessage): boolean {
  const names = (headers.upgrade ?? "").split(",").map((name) => name.trim().toLowerCase());
  return names.includes("websocket");
}
