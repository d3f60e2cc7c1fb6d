import { ThroughlineError } from "@throughline/core";

/**
 * A `postgres://` or `postgresql://` URL, checked. Nothing of it is repeated in the message: it holds a password.
 * @throws {ThroughlineError} STORE_URL_INVALID
 */
export function parsePostgresUrl(url: string): string {
  try {
    const { protocol } = new URL(url);
    if (protocol === "postgres:" || protocol === "postgresql:") return url;
  } catch {
    // Said below, without the driver's words, which repeat the URL.
  }
  throw new ThroughlineError("STORE_URL_INVALID", "The PostgreSQL URL cannot be read.", {
    remedy: "Use postgres://user:password@host:port/database, with special characters of the password percent-encoded.",
  });
}

/** Host, port and database of a URL, for messages: never the password, nor what stands behind the question mark. */
export function describeUrl(url: string): string {
  const { hostname, port, pathname } = new URL(url);
  return `${hostname === "" ? "localhost" : hostname}:${port === "" ? "5432" : port}${pathname === "" ? "/" : pathname}`;
}
