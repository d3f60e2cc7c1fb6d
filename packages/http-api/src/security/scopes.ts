/** `admin` covers tokens, the audit log and draining, and implies no other scope. */
export const scopes = ["read", "write", "delete", "metrics", "admin"] as const;

/**
 * `gateway:NAME` allows model calls through that upstream. `gateway:manage` also allows changes to the models of an
 * Ollama server.
 */
type GatewayScope = `gateway:${string}`;

export type Scope = (typeof scopes)[number] | GatewayScope;

/** Accepts gateway scopes too, which the fixed list cannot contain. */
export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text) || /^gateway:[a-z0-9][a-z0-9-]{0,31}$/.test(text);
}
