import { useEffect, useState } from "preact/hooks";
import type { SessionJson } from "./json.ts";

export const sessionViews = [
  "transcript",
  "plain",
  "files",
  "usage",
  "context",
  "calls",
  "diff",
  "tree",
  "findings",
  "raw",
] as const;
export type SessionView = (typeof sessionViews)[number];

export interface SessionPlace {
  readonly key: string;
  /** Is null where the key names the agent. */
  readonly agent: string | null;
  readonly archive: string | null;
}

export type Route =
  | { readonly page: "home" | "search" | "usage" | "help" | "missing"; readonly query: URLSearchParams }
  | {
      readonly page: "session";
      readonly query: URLSearchParams;
      readonly place: SessionPlace;
      readonly view: SessionView;
    };

const base = "/inspect/";
const simplePages: ReadonlySet<string> = new Set(["search", "usage", "help"]);

export function routeOf({ pathname, search }: Pick<URL, "pathname" | "search">): Route {
  const query = new URLSearchParams(search);
  const path = pathname.startsWith(base) ? pathname.slice(base.length).replace(/\/$/, "") : "";
  if (path === "") return { page: "home", query };
  if (simplePages.has(path)) return { page: path as "search", query };
  const key = path.startsWith("s/") ? keyOf(path.slice(2)) : null;
  if (key === null) return { page: "missing", query };
  const asked = query.get("v");
  const view = sessionViews.find((name) => name === asked) ?? "transcript";
  return { page: "session", query, view, place: { key, agent: query.get("agent"), archive: query.get("archive") } };
}

/** Reads `~` and base64url, or a percent-encoded key; null for anything else. */
function keyOf(segment: string): string | null {
  try {
    if (!segment.startsWith("~")) return decodeURIComponent(segment);
    const text = atob(segment.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(text, (each) => each.charCodeAt(0)));
  } catch {
    return null;
  }
}

export function keySegment(key: string): string {
  const bytes = new TextEncoder().encode(key);
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return `~${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

type Changes = Readonly<Record<string, string | number | null>>;

export function placeOf(session: Pick<SessionJson, "key" | "agentId" | "archiveId">): SessionPlace {
  const named = session.key.startsWith(`agent:${session.agentId}:`);
  return { key: session.key, agent: named ? null : session.agentId, archive: session.archiveId };
}

export function sessionHref({ key, agent, archive }: SessionPlace, changes: Changes = {}): string {
  return `${base}s/${keySegment(key)}${queryText(new URLSearchParams(), { agent, archive, ...changes })}`;
}

export function pageHref(page: "" | "search" | "usage" | "help", changes: Changes = {}): string {
  return `${base}${page}${queryText(new URLSearchParams(), changes)}`;
}

/** Returns the address of the page with some members of its query changed; null removes one. */
export function hrefWith(changes: Changes): string {
  return location.pathname + queryText(new URLSearchParams(location.search), changes);
}

function queryText(query: URLSearchParams, changes: Changes): string {
  for (const [name, value] of Object.entries(changes))
    if (value === null || value === "") query.delete(name);
    else query.set(name, String(value));
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

const listeners = new Set<() => void>();

export function navigate(href: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const target = new URL(href, location.href);
  if (target.href === location.href) return;
  if (replace) history.replaceState(history.state, "", target);
  else history.pushState(null, "", target);
  for (const listener of listeners) listener();
}

/** Follows links of the page without loading it again. Links with a modifier, and those to elsewhere, are the browser's. */
export function followLinks(): void {
  addEventListener("popstate", () => {
    for (const listener of listeners) listener();
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const anchor = event.target instanceof Element ? event.target.closest("a") : null;
    if (anchor === null || anchor.target !== "" || anchor.hasAttribute("download")) return;
    if (anchor.origin !== location.origin || !anchor.pathname.startsWith(base)) return;
    if (anchor.hash !== "" && anchor.pathname === location.pathname) return;
    event.preventDefault();
    navigate(anchor.href);
  });
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(location));
  useEffect(() => {
    const update = (): void => setRoute(routeOf(location));
    listeners.add(update);
    return () => void listeners.delete(update);
  }, []);
  return route;
}
