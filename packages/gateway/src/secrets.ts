import type { IncomingHttpHeaders } from "node:http";
import { hasToken } from "./raw-headers.ts";

const secretNames = /key|token|secret|sign|pass|auth|cred/i;

/** Returns the query without parameters that may hold a secret, because the query is stored. */
export function keptQuery(target: string): string {
  const mark = target.indexOf("?");
  if (mark === -1) return "";
  const parts = target.slice(mark + 1, mark + 1 + 2048).split("&");
  return parts.filter((part) => !hasToken(part) && !part.split(";").some(isSecret)).join("&");
}

/**
 * A client may percent-encode a parameter name. A name that cannot be decoded could be any name, so it counts as a
 * secret.
 */
function isSecret(member: string): boolean {
  const [name = ""] = member.split("=");
  try {
    return secretNames.test(decodeURIComponent(name));
  } catch (error) {
    if (error instanceof URIError) return true;
    throw error;
  }
}

/** Masking shorter values would corrupt error texts, because such values occur as ordinary words. */
const leastSecret = 8;

/** Returns the key, or an empty text when the key is too short to be masked safely. */
export function secretOf(apiKey: string | null): string {
  return apiKey === null || apiKey.length < leastSecret ? "" : apiKey;
}

/**
 * Returns the credentials that a stored error text must not contain: the header values with names that look like keys,
 * and the server's key.
 */
export function credentialsIn(headers: IncomingHttpHeaders, apiKey: string | null): readonly string[] {
  const values = Object.entries(headers).flatMap(([name, value]) =>
    secretNames.test(name) ? [value ?? ""].flat() : [],
  );
  // Cut the scheme name, such as `Bearer`.
  const shown = [...values.map((value) => value.trim().split(" ").at(-1) ?? ""), apiKey ?? ""];
  return shown.filter(({ length }) => length >= leastSecret);
}

/** Masks credentials, because an error of a provider may quote the key that it refuses. */
export function withoutCredentials(text: string, credentials: readonly string[]): string {
  return credentials.reduce((left, secret) => left.replaceAll(secret, "[credential]"), text);
}
