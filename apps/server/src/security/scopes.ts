/** What a token may do. `admin` is tokens, the audit log and draining, and implies no other scope. */
export const scopes = ["read", "write", "delete", "metrics", "admin"] as const;

export type Scope = (typeof scopes)[number];

export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text);
}
