import { ThroughlineError } from "@throughline/core";
import type { LayoutName } from "./layout.ts";

export interface ParsedUrl {
  readonly url: string;
  readonly schema: string | null;
  readonly layout: LayoutName | null;
}

/**
 * Parses a `postgres://` or `postgresql://` URL, and removes `?schema=` and `layout=`, which concern only the store. An
 * error repeats no part of the URL, because the URL holds a password.
 * @throws {ThroughlineError} STORE_URL_INVALID
 */
export function parsePostgresUrl(url: string): ParsedUrl {
  const parsed = URL.parse(url);
  if (parsed === null || !/^postgres(ql)?:$/.test(parsed.protocol) || parsed.hostname === "")
    throw new ThroughlineError("STORE_URL_INVALID", "The PostgreSQL URL cannot be read.", {
      remedy:
        "Use postgres://user:password@host:port/database, with the special characters of the password percent-encoded.",
    });
  const schema = parsed.searchParams.get("schema");
  const layout = parsed.searchParams.get("layout");
  if (layout !== null && layout !== "plain" && layout !== "tenant")
    throw new ThroughlineError("STORE_URL_INVALID", "The PostgreSQL URL names no layout that there is.", {
      remedy: "Use layout=plain or layout=tenant, or leave it out: a schema keeps the layout it was made with.",
    });
  for (const name of ["schema", "layout"]) parsed.searchParams.delete(name);
  return { url: parsed.href, schema, layout };
}

/** Returns host, port and database for messages. The password and the query of the URL never appear. */
export function describeUrl(url: string): string {
  const { hostname, port, pathname } = new URL(parsePostgresUrl(url).url);
  return `${hostname}:${port === "" ? "5432" : port}${pathname === "" ? "/" : pathname}`;
}
