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

/**
 * The gateway sets these headers itself, or they concern only the connection between client and gateway. They must not
 * be forwarded.
 */
const ofTheWay: ReadonlySet<string> = new Set([
  "host",
  "content-length",
  "accept-encoding",
  "cookie",
  "forwarded",
  "expect",
]);

/** With the server's key, these headers carry the account's credential, so the client's values are dropped. */
const ofTheAccount: ReadonlySet<string> = new Set(["authorization", "x-api-key", "api-key"]);

/**
 * A provider's own header may select an organization, a workspace or a user of the account. With the server's key only
 * the listed headers are forwarded, because the effect of any other header is unknown.
 */
const ofTheProvider = /^(?:anthropic|openai|chatgpt|x-goog|x-amz|x-ms)-/;
const choosingNothing: ReadonlySet<string> = new Set([
  "anthropic-version",
  "anthropic-beta",
  "anthropic-dangerous-direct-browser-access",
  "openai-beta",
]);

function choosesAccount(name: string): boolean {
  return ofTheAccount.has(name) || (ofTheProvider.test(name) && !choosingNothing.has(name));
}

const tokenForm = /tl_[a-z0-9]{12}_[A-Za-z0-9_-]/i;
/** Limits how often URL escapes are decoded, because escapes can be nested. */
const mostEscapes = 3;

/** Returns whether a text contains a Throughline token, also in URL-escaped form. */
export function hasToken(text: string): boolean {
  let plain = text;
  for (let undone = 0; undone <= mostEscapes; undone++) {
    if (tokenForm.test(plain)) return true;
    if (!plain.includes("%")) return false;
    plain = plain.replace(/%([0-7][0-9a-f])/gi, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)));
  }
  return false;
}

function without(raw: readonly string[], isDropped: (name: string, value: string) => boolean): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2)
    if (!isDropped((raw[at] as string).toLowerCase(), raw[at + 1] as string))
      kept.push(raw[at] as string, raw[at + 1] as string);
  return kept;
}

/** HTTP forbids forwarding headers that the `Connection` header names. */
function namedByConnection(raw: readonly string[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (let at = 0; at + 1 < raw.length; at += 2)
    if ((raw[at] as string).toLowerCase() === "connection")
      for (const name of (raw[at + 1] as string).split(",")) names.add(name.trim().toLowerCase());
  return names;
}

/**
 * Returns the headers for the upstream, with the order, case and repeats of the client's headers.
 *
 * @param isOwnCredential whether the request's key is a Throughline token, which no provider may see
 */
export function requestHeaders({ rawHeaders }: IncomingMessage, isOwnCredential: boolean): string[] {
  const named = namedByConnection(rawHeaders);
  return without(rawHeaders, (name, value) => {
    // A client may send its Throughline token where the provider's key belongs. The provider must not see the token.
    if (hasToken(value)) return true;
    if (hopByHop.has(name) || named.has(name) || ofTheWay.has(name)) return true;
    if (name.startsWith("x-forwarded-") || name.startsWith("throughline-")) return true;
    return isOwnCredential && choosesAccount(name);
  });
}

/** These headers describe the bytes of the client's body, so they are wrong for a rebuilt body. */
const ofTheBody: ReadonlySet<string> = new Set([
  "content-encoding",
  "content-md5",
  "content-digest",
  "repr-digest",
  "digest",
]);

/**
 * Returns the headers for a request whose body the gateway built.
 *
 * @param isRepeat whether the provider already received the client's request: under the same idempotency key it would
 *   repeat its first answer
 */
export function headersOfMade(raw: readonly string[], isRepeat: boolean): string[] {
  return without(raw, (name) => ofTheBody.has(name) || (isRepeat && name === "idempotency-key"));
}

/**
 * Returns whether a header sets client state for the provider's account, such as cookies or CORS rules. With the
 * server's key these must not reach a client.
 */
function isForOneClient(name: string): boolean {
  return name.startsWith("set-cookie") || name.startsWith("access-control-") || name === "clear-site-data";
}

/**
 * Returns the headers for the client.
 *
 * @param secret the server key that the provider received, which no client may see; null when the client sent its own
 *   key
 */
export function responseHeaders({ rawHeaders }: IncomingMessage, secret: string | null): string[] {
  const named = namedByConnection(rawHeaders);
  const headers = without(rawHeaders, (name) => {
    if (secret !== null && isForOneClient(name)) return true;
    return hopByHop.has(name) || named.has(name) || name.startsWith("throughline-");
  });
  return headers.map((text) => withoutSecret(text, secret));
}

/** Masks the key in a text of the answer's head. */
export function withoutSecret(text: string, secret: string | null): string {
  return secret === null || secret === "" ? text : text.replaceAll(secret, masked(secret));
}

/** Returns a mask of equal length, so that the content length of the answer stays valid. */
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

/** Returns the headers to store. This is an allowlist, because any other header may carry a credential. */
export function keptHeaders(
  { headers }: IncomingMessage,
  which: "request" | "response",
): Readonly<Record<string, string>> {
  const names = which === "request" ? keptOfRequests : keptOfResponses;
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name];
      // A client may put its Throughline token into a header such as `user-agent` by mistake. The token must not be
      // stored.
      return value === undefined || hasToken(String(value)) ? [] : [[name, String(value).slice(0, longestKept)]];
    }),
  );
}
