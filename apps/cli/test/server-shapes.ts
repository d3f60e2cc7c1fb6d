import { count, kind, listOfTexts, or, text, type Shape } from "./shape-checks.ts";

/** What `serve` and `token` print. */
export const serverShapes: Readonly<Record<string, Shape>> = {
  link: { ...kind, key: text, sessionId: text, seq: or(count), url: text },
  page: { ...kind, url: text, pid: or(count), store: text, expiresAtMs: or(count) },
  mcp: { ...kind, url: text, pid: count, store: text },
  server: { ...kind, url: text, pid: count, store: text, serverFile: text },
  token: {
    ...kind,
    id: text,
    label: or(text),
    namespace: text,
    agents: (value) => value === "*" || listOfTexts(value),
    scopes: listOfTexts,
    createdAtMs: count,
    mode: or(text),
    expiresAtMs: or(count),
    revokedAtMs: or(count),
    secret: or(text),
  },
};
