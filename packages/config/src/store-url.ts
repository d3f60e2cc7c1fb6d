import { isAbsolute, resolve, sep } from "node:path";
import { ThroughlineError } from "@throughline/core";
import { maskSecrets } from "./mask-secrets.ts";

/** The parts of a store URL. */
export type StoreAddress =
  /** A database in one file. */
  | {
      readonly scheme: "sqlite";
      /** The absolute path of the database file. */
      readonly path: string;
    }
  /** A folder of JSON Lines files. */
  | {
      readonly scheme: "jsonl";
      /** The absolute path of the folder. */
      readonly root: string;
    }
  /** A database on a PostgreSQL server. */
  | {
      readonly scheme: "postgres";
      /** The connection URL as it was given, with its password. */
      readonly url: string;
    }
  /** A Throughline server. */
  | {
      readonly scheme: "http";
      /** The address of the server, without a slash at the end. */
      readonly url: string;
    }
  /** A store in the memory of the process. */
  | { readonly scheme: "memory" };

const availableSchemes = ["sqlite:FILE", "jsonl:DIRECTORY", "postgres://…", "http://…", "memory:"];

/**
 * Parses a store URL; a relative path is resolved from `workingDirectory`.
 * @throws {ThroughlineError} STORE_URL_INVALID
 */
export function parseStoreUrl(url: string, workingDirectory: string): StoreAddress {
  const match = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(url);
  const scheme = match?.[1]?.toLowerCase();
  const rest = match?.[2] ?? "";
  const shown = JSON.stringify(maskSecrets(url));
  if (scheme === "memory" && rest === "") return { scheme };
  if (scheme === "jsonl" || scheme === "sqlite") {
    // Half of a URL: nobody can tell whether a host, a relative or an absolute path is meant.
    if (sep === "/" && rest.startsWith("//") && !isAbsolute(rest.slice(2)))
      throw invalid(
        `The store URL ${shown} has two slashes and no absolute path: write ${scheme}:${rest.slice(2)} or ${scheme}:///….`,
      );
    const given = rest.startsWith("//") && isAbsolute(rest.slice(2)) ? rest.slice(2) : rest;
    const what = scheme === "jsonl" ? "directory" : "file";
    if (/^(?::memory:|file:)/i.test(given))
      throw invalid(`The store URL ${shown} is SQLite's own: write memory: for a store in memory, or ${scheme}:PATH.`);
    if (given === "" || given.includes("\0")) throw invalid(`The store URL ${shown} names no ${what}.`);
    const path = resolve(workingDirectory, given);
    return scheme === "jsonl" ? { scheme, root: path } : { scheme, path };
  }
  if (scheme === "postgres" || scheme === "postgresql") {
    // Special characters of a password have to be percent-encoded, or nobody can tell where the host begins.
    if (!rest.startsWith("//") || !URL.canParse(url)) throw invalid(`The store URL ${shown} cannot be read.`);
    return { scheme: "postgres", url };
  }
  if (scheme === "http" || scheme === "https") return { scheme: "http", url: serverUrl(url, rest, shown) };
  throw invalid(`The store URL ${shown} is none of ${availableSchemes.join(", ")}.`);
}

/** Replaces a leading `~` of the path by the user's directory: no shell does it behind `sqlite:`. */
export function expandStoreUrl(url: string, userHome: string): string {
  return url.replace(/^((?:sqlite|jsonl):)~(?=[/\\]|$)/i, (_all, scheme: string) => `${scheme}${userHome}`);
}

/** The address of a server. A token in it would be printed and logged wherever a store URL is. */
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
