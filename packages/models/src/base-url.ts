import { ThroughlineError } from "@throughline/core";

/**
 * Holds an address without its user name and password. `fetch` rejects them in a URL, and its error would repeat the
 * whole address.
 */
export interface PlainAddress {
  readonly url: string;
  /** Holds the credentials of the address as an Authorization header; null when the address had none. */
  readonly authorization: string | null;
}

/**
 * Separates the credentials from an address. The error does not repeat the address, because it may hold a password.
 * @throws {ThroughlineError} INPUT_INVALID for an invalid address
 */
export function plainAddress(address: string): PlainAddress {
  const whole = address.includes("://") ? address : `http://${address.startsWith(":") ? "127.0.0.1" : ""}${address}`;
  const url = URL.parse(whole);
  if (url === null) {
    throw new ThroughlineError("INPUT_INVALID", "The base URL of a model cannot be read.", {
      remedy: "Write http:// or https://, a host, and where needed a port and a path.",
    });
  }
  if (url.username === "" && url.password === "") return { url: address, authorization: null };
  const pair = Buffer.from(`${decoded(url.username)}:${decoded(url.password)}`).toString("base64");
  return { url: address.replace(/(^|:\/\/)[^/?#]*@/, "$1"), authorization: `Basic ${pair}` };
}

/** A percent sign that starts no valid code is kept, because a password may contain it. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch (error) {
    if (error instanceof URIError) return part;
    throw error;
  }
}

/**
 * Rejects credentials in the address, because these SDKs send their key in the Authorization header.
 * @throws {ThroughlineError} INPUT_INVALID for an address with a name or a password
 */
export function addressWithoutCredentials(address: string): string {
  const { url, authorization } = plainAddress(address);
  if (authorization === null) return url;
  throw new ThroughlineError("INPUT_INVALID", "The base URL of a model holds a name and a password.", {
    remedy: "Take them out of the URL and send them as a header (headers), or use the key.",
  });
}
