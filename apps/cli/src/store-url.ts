import { isAbsolute, resolve, sep } from "node:path";
import { ThroughlineError } from "@throughline/core";

/** A store URL this build can open. */
export type StoreAddress =
  | { readonly scheme: "sqlite"; readonly path: string }
  | { readonly scheme: "jsonl"; readonly root: string }
  | { readonly scheme: "postgres"; readonly url: string }
  | { readonly scheme: "memory" };

const availableSchemes = ["sqlite:FILE", "jsonl:DIRECTORY", "postgres://…", "memory:"];

/**
 * Reads a store URL; a relative path is taken from `workingDirectory`.
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
  throw invalid(`The store URL ${shown} is none of ${availableSchemes.join(", ")}.`);
}

/** The URL with the user's directory for a leading `~`: no shell puts it in there, behind `sqlite:`. */
export function withHome(url: string, userHome: string): string {
  return url.replace(/^((?:sqlite|jsonl):)~(?=[/\\]|$)/i, (_all, scheme: string) => `${scheme}${userHome}`);
}

function invalid(message: string): ThroughlineError {
  return new ThroughlineError("STORE_URL_INVALID", message, { details: { available: availableSchemes } });
}

/**
 * The text with the passwords of every URL in it hidden, `postgres://ada:***@host/db?password=***`, and what stands behind
 * "Bearer" or begins as the usual keys do. Greedy up to the
 * last `@` before white space, because passwords are often written with an unescaped `@` or `/`. Takes time in proportion
 * to the text: an error may quote the whole page a proxy answered with.
 */
export function maskSecrets(text: string): string {
  return text
    .replace(/[^\s"']+/g, (word) => (word.includes("@") ? maskPassword(word) : word))
    .replace(/([?&;][^\s=&;?]*=)([^\s&;"']*)/g, (all, name: string) => (secretName.test(name) ? `${name}***` : all))
    .replace(/\b(Bearer|Basic) +(?=[\w.~+/=-]*\d)[\w.~+/=-]{8,}/g, "$1 ***")
    .replace(/\b(sk|xoxb|xoxp|ghp|gho)([-_])([\w-]+)/g, (all, kind: string, dash: string, key: string) =>
      key.length < 12 ? all : `${kind}${dash}***`,
    );
}

const secretName = /password|passwd|pwd|secret|token|apikey|api_key/i;

function maskPassword(word: string): string {
  const user = /:\/\/[^:@/?#]*:/.exec(word);
  const hostAt = word.lastIndexOf("@");
  if (user === null) return word;
  const passwordAt = user.index + user[0].length;
  return hostAt < passwordAt ? word : `${word.slice(0, passwordAt)}***${word.slice(hostAt)}`;
}

/** Deeper than this nobody reads, and JSON of it may not be writable. */
const deepestShown = 100;

/** The value with every text in it masked, for the details of an error; what is nested deeper than is shown is left out. */
export function maskDeep(value: unknown): unknown {
  return maskAt(value, []);
}

function maskAt(value: unknown, inside: readonly object[]): unknown {
  if (typeof value === "string") return maskSecrets(value);
  if (typeof value !== "object" || value === null) return value;
  if (inside.includes(value)) return "(the same again)";
  if (inside.length >= deepestShown) return "(nested too deeply to be shown)";
  const within = [...inside, value];
  if (Array.isArray(value)) return value.map((item) => maskAt(item, within));
  const entries = Object.entries(value).map(([key, item]) => [
    maskSecrets(key),
    typeof item === "string" && item !== "" && secretField.test(key) ? "***" : maskAt(item, within),
  ]);
  return Object.fromEntries(entries);
}

/** Fields whose whole value is a secret, as an error of another program may hold them. */
const secretField = /(?:password|passwd|secret|api[-_]?key|authorization|(?:access|auth|bearer)[-_]?token)$/i;
