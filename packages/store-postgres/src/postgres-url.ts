import { ThroughlineError } from "@throughline/core";

/**
 * A `postgres://` or `postgresql://` URL, checked, without `?schema=`, which is for the store. Nothing of it is repeated
 * in the message: it holds a password.
 * @throws {ThroughlineError} STORE_URL_INVALID
 */
export function parsePostgresUrl(url: string): { readonly url: string; readonly schema: string | null } {
  const parsed = URL.parse(url);
  if (parsed === null || !/^postgres(ql)?:$/.test(parsed.protocol) || parsed.hostname === "")
    throw new ThroughlineError("STORE_URL_INVALID", "The PostgreSQL URL cannot be read.", {
      remedy:
        "Use postgres://user:password@host:port/database, with the special characters of the password percent-encoded.",
    });
  const schema = parsed.searchParams.get("schema");
  parsed.searchParams.delete("schema");
  return { url: parsed.href, schema };
}

/** Host, port and database of a URL, for messages: never the password, nor what stands behind the question mark. */
export function describeUrl(url: string): string {
  const { hostname, port, pathname } = new URL(parsePostgresUrl(url).url);
  return `${hostname}:${port === "" ? "5432" : port}${pathname === "" ? "/" : pathname}`;
}
