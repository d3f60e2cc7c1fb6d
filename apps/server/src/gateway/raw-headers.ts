import type { IncomingMessage } from "node:http";

const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Set again for the upstream, or about the way from the client to us. */
const ofTheWay: ReadonlySet<string> = new Set([
  "host",
  "content-length",
  "accept-encoding",
  "cookie",
  "forwarded",
  "expect",
]);

/** With a key of ours, what stands for an account is ours too. */
const ofTheAccount: ReadonlySet<string> = new Set([
  "authorization",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
  "openai-organization",
  "openai-project",
  "chatgpt-account-id",
]);

const tokenForm = /tl_[a-z0-9]{12}_[A-Za-z0-9_-]/i;
/** Escapes of escapes that are undone at most. */
const mostEscapes = 3;

/** Whether a text holds a token of ours, also written with escapes of a URL. */
export function hasToken(text: string): boolean {
  let plain = text;
  for (let undone = 0; undone <= mostEscapes; undone++) {
    if (tokenForm.test(plain)) return true;
    if (!plain.includes("%")) return false;
    plain = plain.replace(/%([0-7][0-9a-f])/gi, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)));
  }
  return false;
}

/** Names and values in turn, as they came, without those that a test takes. */
function without(raw: readonly string[], isDropped: (name: string, value: string) => boolean): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2)
    if (!isDropped((raw[at] as string).toLowerCase(), raw[at + 1] as string))
      kept.push(raw[at] as string, raw[at + 1] as string);
  return kept;
}

/** What a connection header names goes no further either. */
function namedByConnection(raw: readonly string[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (let at = 0; at + 1 < raw.length; at += 2)
    if ((raw[at] as string).toLowerCase() === "connection")
      for (const name of (raw[at + 1] as string).split(",")) names.add(name.trim().toLowerCase());
  return names;
}

/**
 * The headers that the upstream gets: order, case and repeats as they came.
 *
 * @param isOwnCredential whether the request's key is our token, which no provider may see
 */
export function requestHeaders({ rawHeaders }: IncomingMessage, isOwnCredential: boolean): string[] {
  const named = namedByConnection(rawHeaders);
  return without(rawHeaders, (name, value) => {
    // Our token in the place of the provider's key is a mistake that the provider must not see.
    if (hasToken(value)) return true;
    if (hopByHop.has(name) || named.has(name) || ofTheWay.has(name)) return true;
    if (name.startsWith("x-forwarded-") || name.startsWith("throughline-")) return true;
    return isOwnCredential && ofTheAccount.has(name);
  });
}

/** What a client says of the bytes of its body. */
const ofTheBody: ReadonlySet<string> = new Set([
  "content-encoding",
  "content-md5",
  "content-digest",
  "repr-digest",
  "digest",
]);

/**
 * The headers of a request for one with a body of ours.
 *
 * @param isRepeat the provider has heard the client's own: under its key of repeats it would give the first answer again
 */
export function headersOfMade(raw: readonly string[], isRepeat: boolean): string[] {
  return without(raw, (name) => ofTheBody.has(name) || (isRepeat && name === "idempotency-key"));
}

/** Whether a provider sets this header in the client for an account of ours: cookies, or which pages may read its answers. */
function isForOneClient(name: string): boolean {
  return name.startsWith("set-cookie") || name.startsWith("access-control-") || name === "clear-site-data";
}

/**
 * The headers that the client gets.
 *
 * @param secret the key of ours that the provider was shown, which no client may see; null: the client's own was shown
 */
export function responseHeaders({ rawHeaders }: IncomingMessage, secret: string | null): string[] {
  const named = namedByConnection(rawHeaders);
  const headers = without(rawHeaders, (name) => {
    if (secret !== null && isForOneClient(name)) return true;
    return hopByHop.has(name) || named.has(name) || name.startsWith("throughline-");
  });
  return secret === null || secret === "" ? headers : headers.map((text) => text.replaceAll(secret, masked(secret)));
}

/** A text of the same length, so that an answer keeps its own. */
export function masked(secret: string): string {
  return "*".repeat(secret.length);
}

const keptOfRequests: readonly string[] = [
  "anthropic-version",
  "anthropic-beta",
  "openai-beta",
  "user-agent",
  "originator",
  "x-stainless-retry-count",
  "x-claude-code-agent-id",
];
const keptOfResponses: readonly string[] = [
  "request-id",
  "x-request-id",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
];
const longestKept = 200;

/** The few headers that are stored; a header that is not listed never is. */
export function keptHeaders(
  { headers }: IncomingMessage,
  which: "request" | "response",
): Readonly<Record<string, string>> {
  const names = which === "request" ? keptOfRequests : keptOfResponses;
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name];
      // A token of ours in the name of a program is a mistake that must not be kept.
      return value === undefined || hasToken(String(value)) ? [] : [[name, String(value).slice(0, longestKept)]];
    }),
  );
}
