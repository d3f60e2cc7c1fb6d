/** What a token may do. `admin` is tokens, the audit log and draining, and implies no other scope. */
export const scopes = ["read", "write", "delete", "metrics", "admin"] as const;

/** `gateway:NAME`: calls of models by this upstream; `gateway:manage`: also what changes the models of an Ollama. */
type GatewayScope = `gateway:${string}`;

export type Scope = (typeof scopes)[number] | GatewayScope;

/** Whether a text names a scope, also one of the gateway. */
export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text) || /^gateway:[a-z0-9][a-z0-9-]{0,31}$/.test(text);
}
