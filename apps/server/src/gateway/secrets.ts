import type { IncomingHttpHeaders } from "node:http";
import { hasToken } from "./raw-headers.ts";

const secretNames = /key|token|secret|sign|pass|auth|cred/i;

/** The query as it is stored: what may be a secret is left out. */
export function keptQuery(target: string): string {
  const mark = target.indexOf("?");
  if (mark === -1) return "";
  const parts = target.slice(mark + 1, mark + 1 + 2048).split("&");
  return parts.filter((part) => !hasToken(part) && !part.split(";").some(isSecret)).join("&");
}

/** A name may be written with escapes. One that cannot be read may be any. */
function isSecret(member: string): boolean {
  const [name = ""] = member.split("=");
  try {
    return secretNames.test(decodeURIComponent(name));
  } catch (error) {
    if (error instanceof URIError) return true;
    throw error;
  }
}

/** Shorter values are words that an error may well hold. */
const leastSecret = 8;

/** A key that is long enough to differ from other words; empty for a shorter one. */
export function secretOf(apiKey: string | null): string {
  return apiKey === null || apiKey.length < leastSecret ? "" : apiKey;
}

/** What a request shows to prove who asks: the values of its headers whose names look like keys, and the key of ours. */
export function credentialsIn(headers: IncomingHttpHeaders, apiKey: string | null): readonly string[] {
  const values = Object.entries(headers).flatMap(([name, value]) =>
    secretNames.test(name) ? [value ?? ""].flat() : [],
  );
  // Behind the name of its scheme.
  const shown = [...values.map((value) => value.trim().split(" ").at(-1) ?? ""), apiKey ?? ""];
  return shown.filter(({ length }) => length >= leastSecret);
}

/** An error of a provider may quote the key that it refuses. */
export function withoutCredentials(text: string, credentials: readonly string[]): string {
  return credentials.reduce((left, secret) => left.replaceAll(secret, "[credential]"), text);
}
