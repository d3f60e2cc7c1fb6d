import { ThroughlineError } from "@throughline/core";
import type { LayoutName } from "./layout.ts";

/** What a URL says of the store, and the URL that is left for the driver. */
export interface ParsedUrl {
  readonly url: string;
  readonly schema: string | null;
  readonly layout: LayoutName | null;
}

/**
 * A `postgres://` or `postgresql://` URL, checked, without `?schema=` and `layout=`, which are for the store. Nothing of it
 * is repeated in the message: it holds a password.
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

/** Host, port and database of a URL, for messages: never the password, nor what stands behind the question mark. */
export function describeUrl(url: string): string {
  const { hostname, port, pathname } = new URL(parsePostgresUrl(url).url);
  return `${hostname}:${port === "" ? "5432" : port}${pathname === "" ? "/" : pathname}`;
}
