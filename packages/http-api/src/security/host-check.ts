import type { IncomingMessage } from "node:http";
import { refused } from "@throughline/core/internal";

export interface SameSite {
  /** Lists host names and addresses without ports. Loopback is always allowed. */
  readonly hosts: readonly string[];
  /** Lists origins whose pages may call the server. The server's own origin is always allowed. */
  readonly origins: readonly string[];
}

type RequestHead = Pick<IncomingMessage, "url" | "headers" | "headersDistinct" | "rawHeaders">;

const loopback: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Checks the Host header. After DNS rebinding a page sends no Origin with a GET, so only the Host header reveals it.
 * @throws {ThroughlineError} HOST_REFUSED; INPUT_INVALID for two Host lines or none
 */
export function assertHost(request: RequestHead, { hosts }: SameSite): void {
  const values = request.headersDistinct["host"] ?? [];
  const lines = request.rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === "host");
  const [host] = values;
  if (host === undefined || lines.length !== 1) throw refused("INPUT_INVALID", "The request must name one host.");
  const isOriginForm = (request.url ?? "").startsWith("/");
  const name = hostName(host);
  if (isOriginForm && name !== null && (loopback.includes(name) || hosts.includes(name))) return;
  throw refused("HOST_REFUSED", "The server does not serve the host that the request names.");
}

function hostName(host: string): string | null {
  const [, name] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/.exec(host.toLowerCase()) ?? [];
  return name ?? null;
}

/** Returns null when no page sent the request, or when a page of this server did. Both are allowed. */
function foreignOrigin(request: RequestHead): string | null {
  const { origin, host, "sec-fetch-site": site } = request.headers;
  if (origin !== undefined && !isOwn(origin, host)) return origin;
  return site === undefined || site === "same-origin" || site === "none" ? null : "null";
}

function isOwn(origin: string, host: string | undefined): boolean {
  // The host is already checked, so a page of that host belongs to this server. The scheme is ignored, because a proxy
  // may terminate TLS.
  return host !== undefined && /^https?:\/\//i.test(origin) && origin.replace(/^https?:\/\//i, "") === host;
}

/** @throws {ThroughlineError} ORIGIN_REFUSED */
export function assertOrigin(request: RequestHead, { origins }: SameSite): void {
  const origin = foreignOrigin(request);
  if (origin === null || origins.includes(origin)) return;
  throw refused("ORIGIN_REFUSED", "A page of another origin may not call the server.");
}

/** True if a browser opens the address in a tab: the page that has the link sees nothing of the answer. */
export function isNavigation({ headers }: RequestHead): boolean {
  return (
    headers.origin === undefined && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document"
  );
}

export function corsHeaders(request: RequestHead, { origins }: SameSite): Readonly<Record<string, string>> {
  const { origin } = request.headers;
  if (origin === undefined || !origins.includes(origin)) return {};
  return { "access-control-allow-origin": origin, vary: "origin", "access-control-expose-headers": exposed };
}

const exposed = "etag, retry-after, throughline-request-id";

export const preflightHeaders: Readonly<Record<string, string>> = {
  "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
  "access-control-allow-headers":
    "authorization, content-type, if-match, if-none-match, idempotency-key, last-event-id, throughline-fence, throughline-namespace",
  "access-control-max-age": "600",
};
