import type { IncomingMessage } from "node:http";
import { refused } from "@throughline/core/internal";

/** Which hosts a server answers for, and which pages may call it. */
export interface SameSite {
  /** Names and addresses beside those of loopback, without ports. */
  readonly hosts: readonly string[];
  /** Origins beside the server's own. */
  readonly origins: readonly string[];
}

const loopback: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

/**
 * A page whose name was rebound to this address sends no Origin with a GET. Only the name in Host shows it.
 * @throws {ThroughlineError} HOST_REFUSED; INPUT_INVALID for two Host lines or none
 */
export function assertHost(request: IncomingMessage, { hosts }: SameSite): void {
  const values = request.headersDistinct["host"] ?? [];
  const lines = request.rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === "host");
  const [host] = values;
  if (host === undefined || lines.length !== 1) throw refused("INPUT_INVALID", "The request must name one host.");
  const isOriginForm = (request.url ?? "").startsWith("/");
  const name = hostName(host);
  if (isOriginForm && name !== null && (loopback.includes(name) || hosts.includes(name))) return;
  throw refused("HOST_REFUSED", "The server does not serve the host that the request names.");
}

/** The name of a Host header in lower case, without its port; null for an invalid one. */
function hostName(host: string): string | null {
  const [, name] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/.exec(host.toLowerCase()) ?? [];
  return name ?? null;
}

/** Whether a request comes from a page, and from which: null when no page sent it, or our own did. */
function foreignOrigin(request: IncomingMessage): string | null {
  const { origin, host, "sec-fetch-site": site } = request.headers;
  if (origin !== undefined && !isOwn(origin, host)) return origin;
  return site === undefined || site === "same-origin" || site === "none" ? null : "null";
}

function isOwn(origin: string, host: string | undefined): boolean {
  // The host was checked: a page of that host is a page of this server, also behind a proxy that speaks TLS.
  return host !== undefined && /^https?:\/\//i.test(origin) && origin.replace(/^https?:\/\//i, "") === host;
}

/** @throws {ThroughlineError} ORIGIN_REFUSED */
export function assertOrigin(request: IncomingMessage, { origins }: SameSite): void {
  const origin = foreignOrigin(request);
  if (origin === null || origins.includes(origin)) return;
  throw refused("ORIGIN_REFUSED", "A page of another origin may not call the server.");
}

/** The headers that let a page of another origin read an answer: only for those that the configuration names. */
export function corsHeaders(request: IncomingMessage, { origins }: SameSite): Readonly<Record<string, string>> {
  const { origin } = request.headers;
  if (origin === undefined || !origins.includes(origin)) return {};
  return { "access-control-allow-origin": origin, vary: "origin", "access-control-expose-headers": exposed };
}

const exposed = "etag, retry-after, throughline-request-id";

/** The answer to a browser that asks before a request of an origin that the configuration names. */
export const preflightHeaders: Readonly<Record<string, string>> = {
  "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
  "access-control-allow-headers":
    "authorization, content-type, if-match, if-none-match, idempotency-key, last-event-id, throughline-fence, throughline-namespace",
  "access-control-max-age": "600",
};
