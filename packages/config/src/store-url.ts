import { isAbsolute, resolve, sep } from "node:path";
import { ThroughlineError } from "@throughline/core";
import { maskSecrets } from "./mask-secrets.ts";

/** Holds the parts of a store URL. */
export type StoreAddress =
  /** Addresses a database in one file. */
  | {
      readonly scheme: "sqlite";
      /** States the absolute path of the database file. */
      readonly path: string;
    }
  /** Addresses a folder of JSON Lines files. */
  | {
      readonly scheme: "jsonl";
      /** States the absolute path of the folder. */
      readonly root: string;
    }
  /** Addresses a database on a PostgreSQL server. */
  | {
      readonly scheme: "postgres";
      /** Holds the connection URL as given, with its password. */
      readonly url: string;
    }
  /** Addresses a Throughline server. */
  | {
      readonly scheme: "http";
      /** States the address of the server, without a slash at the end. */
      readonly url: string;
    }
  /** Addresses a store in the memory of the process. */
  | { readonly scheme: "memory" };

const availableSchemes = ["sqlite:FILE", "jsonl:DIRECTORY", "postgres://…", "http://…", "memory:"];

const encryptedEnd = /[?&]encrypted=[01]$/i;

/** Returns what the URL of a store says about its encryption; null when it says nothing. */
export function encryptedOf(url: string): boolean | null {
  const [end] = encryptedEnd.exec(url) ?? [];
  return end === undefined ? null : end.endsWith("1");
}

/**
 * Parses a store URL. A relative path is resolved from `workingDirectory`.
 * `?encrypted=1` or `?encrypted=0` at the end is no part of the address.
 * @throws {ThroughlineError} STORE_URL_INVALID
 */
export function parseStoreUrl(given: string, workingDirectory: string): StoreAddress {
  const url = /^(?:sqlite|jsonl|postgres|postgresql):/i.test(given) ? given.replace(encryptedEnd, "") : given;
  const match = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(url);
  const scheme = match?.[1]?.toLowerCase();
  const rest = match?.[2] ?? "";
  const shown = JSON.stringify(maskSecrets(url));
  if (scheme === "memory" && rest === "") return { scheme };
  if (scheme === "jsonl" || scheme === "sqlite") {
    // Two slashes without an absolute path are ambiguous: the next part may be a host, a relative path or an absolute
    // path.
    if (sep === "/" && rest.startsWith("//") && !isAbsolute(rest.slice(2)))
      throw invalid(
        `The store URL ${shown} has two slashes and no absolute path: write ${scheme}:${rest.slice(2)} or ${scheme}:///….`,
      );
    const named = rest.startsWith("//") && isAbsolute(rest.slice(2)) ? rest.slice(2) : rest;
    const what = scheme === "jsonl" ? "directory" : "file";
    if (/^(?::memory:|file:)/i.test(named))
      throw invalid(`The store URL ${shown} is SQLite's own: write memory: for a store in memory, or ${scheme}:PATH.`);
    if (named === "" || named.includes("\0")) throw invalid(`The store URL ${shown} names no ${what}.`);
    const path = resolve(workingDirectory, named);
    return scheme === "jsonl" ? { scheme, root: path } : { scheme, path };
  }
  if (scheme === "postgres" || scheme === "postgresql") {
    // Special characters of a password must be percent-encoded, because otherwise the start of the host is ambiguous.
    if (!rest.startsWith("//") || !URL.canParse(url)) throw invalid(`The store URL ${shown} cannot be read.`);
    return { scheme: "postgres", url };
  }
  if (scheme === "http" || scheme === "https") return { scheme: "http", url: serverUrl(url, rest, shown) };
  throw invalid(`The store URL ${shown} is none of ${availableSchemes.join(", ")}.`);
}

/** Replaces a leading `~` of the path by the user's directory, because no shell expands it behind `sqlite:`. */
export function expandStoreUrl(url: string, userHome: string): string {
  return url.replace(/^((?:sqlite|jsonl):)~(?=[/\\]|$)/i, (_all, scheme: string) => `${scheme}${userHome}`);
}

/** A token in the URL is refused, because a store URL is printed and logged. */
function serverUrl(text: string, rest: string, shown: string): string {
  const url = rest.startsWith("//") ? URL.parse(text) : null;
  if (url === null) throw invalid(`The store URL ${shown} cannot be read.`);
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    throw invalid(
      `The store URL ${shown} names more than a server: leave out user, query and fragment; the token is in THROUGHLINE_TOKEN.`,
    );
  return `${url.origin}${url.pathname.replace(/\/$/, "")}`;
}

function invalid(message: string): ThroughlineError {
  return new ThroughlineError("STORE_URL_INVALID", message, { details: { available: availableSchemes } });
}
