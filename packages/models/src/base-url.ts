import { ThroughlineError } from "@throughline/core";

/**
 * An address without the name and password that may stand in it: fetch takes none there, and repeats the whole address in
 * its error.
 */
export interface PlainAddress {
  readonly url: string;
  /** What stood in it, as the header that carries it; null when nothing did. */
  readonly authorization: string | null;
}

/** @throws {ThroughlineError} INPUT_INVALID for an invalid address, which the message does not repeat */
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

/** A percent sign that begins no code stands for itself. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch (error) {
    if (error instanceof URIError) return part;
    throw error;
  }
}

/** For the SDKs that send a key of their own in the header that a name and password would need. */
export function addressWithoutCredentials(address: string): string {
  const { url, authorization } = plainAddress(address);
  if (authorization === null) return url;
  throw new ThroughlineError("INPUT_INVALID", "The base URL of a model holds a name and a password.", {
    remedy: "Take them out of the URL and send them as a header (headers), or use the key.",
  });
}
