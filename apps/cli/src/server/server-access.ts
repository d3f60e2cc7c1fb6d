import { ThroughlineError } from "@throughline/core";
import { readServerFile, serverFilePath } from "./server-file.ts";

export interface TokenPlaces {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/**
 * Returns the token of THROUGHLINE_TOKEN, else the token of the server that runs in this home, if the URL addresses
 * that server. No other server receives it.
 * @throws {ThroughlineError} CONFIG_INVALID for a variable that holds no token; PATH_UNSAFE for an open `server.json`
 */
export function findToken(url: string, { environment, home }: TokenPlaces): string | undefined {
  const given = environment["THROUGHLINE_TOKEN"]?.trim() ?? "";
  if (given !== "") {
    if (/^[\x21-\x7e]+$/.test(given)) return given;
    throw new ThroughlineError("CONFIG_INVALID", "THROUGHLINE_TOKEN holds no token.", {
      details: { name: "THROUGHLINE_TOKEN" },
      remedy: "Set it to the text that token create printed: tl_, an id and a secret.",
    });
  }
  const file = readServerFile(serverFilePath(home));
  return file !== null && isSameServer(file.url, url) ? file.token : undefined;
}

/** These host names address this machine. */
export const loopback: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

function isSameServer(one: string, other: string): boolean {
  const [left, right] = [new URL(one), new URL(other)];
  const isSameHost = left.hostname === right.hostname || (loopback.has(left.hostname) && loopback.has(right.hostname));
  return isSameHost && left.protocol === right.protocol && left.port === right.port && right.pathname === "/";
}
