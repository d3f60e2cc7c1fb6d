import { ApiError, getChanged, getJson } from "../api.ts";
import type { ListJson, SessionJson } from "../json.ts";

/** Selects sessions. Each member stands in the address of the page under the same name. */
export interface SessionFilters {
  readonly q: string;
  readonly program: string;
  readonly cwd: string;
  readonly state: string;
  readonly since: string;
}

const day = 24 * 60 * 60_000;
const sinceDays: Readonly<Record<string, number>> = { "1d": 1, "7d": 7, "30d": 30 };

export function filtersOf(query: URLSearchParams): SessionFilters {
  const of = (name: string): string => query.get(name) ?? "";
  return { q: of("q"), program: of("program"), cwd: of("cwd"), state: of("state"), since: of("since") };
}

export const pageSize = 50;

function queryOf({ q, program, cwd, state, since }: SessionFilters): Record<string, string | number> {
  const days = sinceDays[since];
  // Rounded, so that a repeated request is the same and its tag counts.
  const sinceMs = days === undefined ? null : Math.floor((Date.now() - days * day) / 3_600_000) * 3_600_000;
  return {
    limit: pageSize,
    ...(q === "" ? {} : { q }),
    ...(program === "" ? {} : { program }),
    ...(cwd === "" ? {} : { cwd }),
    ...(sinceMs === null ? {} : { sinceMs }),
    ...(state === "archived" || state === "any" ? { state } : {}),
    // Sub-agents stand under the sessions that started them.
    ...(state === "sub-agents" ? {} : { spawned: "false" }),
  };
}

export interface SessionPages {
  readonly items: readonly SessionJson[];
  readonly cursor: string | null;
  readonly leftOut: number;
  /** Is the tag of the first page. */
  readonly tag: string | null;
}

/** Asks for the first page. Returns null while it is as it was. */
export async function firstPage(
  filters: SessionFilters,
  tag: string | null,
  signal: AbortSignal,
): Promise<SessionPages | null> {
  const found = await getChanged<ListJson<SessionJson>>("/sessions", queryOf(filters), tag, signal);
  if (found === null) return null;
  const { items, nextCursor, leftOut = 0 } = found.answer;
  return { items, cursor: nextCursor, leftOut, tag: found.tag };
}

export async function nextPage(filters: SessionFilters, pages: SessionPages): Promise<SessionPages> {
  if (pages.cursor === null) return pages;
  const query = { ...queryOf(filters), cursor: pages.cursor };
  const { items, nextCursor, leftOut = 0 } = await getJson<ListJson<SessionJson>>("/sessions", query);
  const known = new Set(pages.items.map(({ sessionId }) => sessionId));
  return {
    ...pages,
    // A session that was active meanwhile moves to the front and would come twice.
    items: [...pages.items, ...items.filter(({ sessionId }) => !known.has(sessionId))],
    cursor: nextCursor,
    leftOut: pages.leftOut + leftOut,
  };
}

/** Puts a new first page before the pages that were loaded earlier. */
export function refreshed(pages: SessionPages, first: SessionPages): SessionPages {
  const fresh = new Set(first.items.map(({ sessionId }) => sessionId));
  const rest = pages.items.filter(({ sessionId }) => !fresh.has(sessionId));
  if (pages.items.length <= pageSize) return first;
  return { ...pages, items: [...first.items, ...rest], tag: first.tag };
}

export function isCursorGone(error: unknown): boolean {
  return error instanceof ApiError && error.code === "CURSOR_INVALID";
}
