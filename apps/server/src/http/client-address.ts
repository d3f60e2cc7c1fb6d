import type { IncomingMessage } from "node:http";

/** The address that asks: of the connection, or, behind a proxy that is trusted, the last one that proxy names. */
export function clientAddress({ socket, headers }: IncomingMessage, trustedProxies: readonly string[]): string {
  const own = plain(socket.remoteAddress ?? "");
  if (!trustedProxies.includes(own)) return own;
  const forwarded = headers["x-forwarded-for"];
  const addresses = (Array.isArray(forwarded) ? forwarded.join(",") : (forwarded ?? ""))
    .split(",")
    .map((each) => each.trim());
  // What stands before a proxy of ours was written by anybody.
  return addresses.findLast((address) => address !== "" && !trustedProxies.includes(plain(address))) ?? own;
}

/** IPv4 in IPv6 as IPv4. */
function plain(address: string): string {
  return address.replace(/^::ffff:/i, "");
}
