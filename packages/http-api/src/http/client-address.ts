import type { IncomingHttpHeaders } from "node:http";

/**
 * Returns the address of the connection. Behind a trusted proxy it is the last forwarded address that is not a trusted
 * proxy.
 */
export function clientAddress(
  connection: string,
  headers: IncomingHttpHeaders,
  trustedProxies: readonly string[],
): string {
  const own = plain(connection);
  if (!trustedProxies.includes(own)) return own;
  const forwarded = headers["x-forwarded-for"];
  const addresses = (Array.isArray(forwarded) ? forwarded.join(",") : (forwarded ?? ""))
    .split(",")
    .map((each) => each.trim());
  // Any client can forge the addresses before the last one, so the search runs from the end.
  return addresses.findLast((address) => address !== "" && !trustedProxies.includes(plain(address))) ?? own;
}

/** Node reports IPv4 clients of a dual-stack socket as IPv6 addresses, which would not match the configured proxies. */
function plain(address: string): string {
  return address.replace(/^::ffff:/i, "");
}
