/**
 * Returns the path of a session below `/api/v1`. The key is sent as `~` and base64url, so that proxies which decode
 * `%2F` or collapse slashes cannot change it.
 */
export function sessionPath(key: string): string {
  const binary = Array.from(new TextEncoder().encode(key), (byte) => String.fromCharCode(byte)).join("");
  return `/sessions/~${btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}
