import type { ListQuery, SessionRef } from "@throughline/core";
import { assertStoreOptions, importSourceDigest } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";

export interface ListedSession {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly updatedAtMs: number;
  /** Holds the `entrySourceDigest` of the entry. Only stores that find sessions by `sessionsBehind` need it. */
  readonly sourceDigest?: string | null;
  /** True when more sessions follow whose entries do not fit the page. @default false */
  readonly endsPage?: boolean;
}

/** Holds the sort key of a session in a list: minus its time or 0, agent, key, session id. */
export type ListPosition = readonly (string | number)[];

/** Describes the page of a list, for stores whose database finds, sorts and cuts the sessions. */
export interface ListPlan {
  /** Sets the order: newest first, or by agent, key and session id. */
  readonly sort: "updated" | "key";
  /** Sets whether current sessions, archived sessions or both are listed. */
  readonly state: "active" | "archived" | "any";
  /** Holds the digest of the source whose sessions are listed; null lists the sessions of any source, and of none. */
  readonly sourceDigest: string | null;
  /** Holds the digest of the source whose last purge the page states; null for a page without that time. */
  readonly purgedSource: string | null;
  /** Limits the number of sessions on the page. */
  readonly limit: number;
  /** Sets the position after which the page starts; null starts at the first session. */
  readonly after: ListPosition | null;
  /** Returns the cursor of a page that ends at this position. */
  cursorAt(position: ListPosition): string;
}

/**
 * Checks a query and reads its cursor. The cursor states where the previous page ended, not how many sessions it had. A
 * session that does not change therefore appears once, whatever happens to other sessions.
 * @throws {ThroughlineError} CURSOR_INVALID, INPUT_INVALID
 */
export function planList(query: ListQuery): ListPlan {
  assertStoreOptions("list", query);
  const { sort = "updated", limit = 50, cursor } = query;
  const { namespace, agentId, keyPrefix, sinceMs, untilMs } = query;
  const { state, sourceDigest } = listedSource(query);
  const queryText = JSON.stringify([namespace, agentId, state, keyPrefix, sinceMs, untilMs, sort, sourceDigest]);
  return {
    sort,
    state,
    sourceDigest,
    purgedSource: (keyPrefix ?? "") === "" ? sourceDigest : null,
    limit: Math.min(limit, 1000),
    after: cursor === undefined ? null : readCursor(cursor, queryText),
    cursorAt: (position) => writeCursor(queryText, position),
  };
}

function listedSource({ state, importedFrom }: ListQuery): Pick<ListPlan, "state" | "sourceDigest"> {
  if (importedFrom === undefined) return { state: state ?? "active", sourceDigest: null };
  return { state: state ?? "any", sourceDigest: importSourceDigest(importedFrom) };
}

/**
 * Returns the first sessions whose entries fit a page. The session that fills `pageBytes` is the last and ends the
 * page. Stores use this function when they know the size of an entry without reading it.
 */
export function withinBytes<Found extends ListedSession>(
  found: readonly Found[],
  bytesOf: (one: Found) => number,
  pageBytes: number,
): readonly (Found & Pick<ListedSession, "endsPage">)[] {
  let bytes = 0;
  const last = found.findIndex((one) => (bytes += bytesOf(one)) >= pageBytes);
  const ending = found[last];
  if (ending === undefined || last === found.length - 1) return found;
  return [...found.slice(0, last), { ...ending, endsPage: true }];
}

/** Returns the sessions that match the query and follow a position, in the query's order. */
export function sessionsBehind<Session extends ListedSession>(
  all: Iterable<Session>,
  query: ListQuery,
  after: ListPosition | null,
): readonly Session[] {
  const { sort = "updated" } = query;
  return Array.from(all)
    .filter(isBehind(query, after))
    .map((session) => ({ session, position: listPosition(session, sort) }))
    .toSorted((one, other) => comparePositions(one.position, other.position))
    .map(({ session }) => session);
}

/** Returns the test whether a session matches the query and follows a position. */
export function isBehind(query: ListQuery, after: ListPosition | null): (session: ListedSession) => boolean {
  const { sort = "updated" } = query;
  const source = listedSource(query);
  return (session) =>
    isListed(session, query, source) && (after === null || comparePositions(listPosition(session, sort), after) > 0);
}

function isListed(
  { ref, updatedAtMs, sourceDigest: from = null }: ListedSession,
  query: ListQuery,
  { state, sourceDigest }: Pick<ListPlan, "state" | "sourceDigest">,
): boolean {
  const { namespace = "", agentId, keyPrefix = "", sinceMs = -Infinity, untilMs = Infinity } = query;
  return (
    (sourceDigest === null || from === sourceDigest) &&
    ref.namespace === namespace &&
    (agentId === undefined || ref.agentId === agentId) &&
    (state === "any" || (state === "archived") === (ref.archiveId !== undefined)) &&
    ref.key.startsWith(keyPrefix) &&
    updatedAtMs >= sinceMs &&
    updatedAtMs < untilMs
  );
}

/** Returns the position of a session in a list of this order. */
export function listPosition({ ref, sessionId, updatedAtMs }: ListedSession, sort: ListPlan["sort"]): ListPosition {
  return [sort === "updated" ? -updatedAtMs : 0, ref.agentId, ref.key, sessionId];
}

function comparePositions(one: ListPosition, other: ListPosition): number {
  for (const [index, part] of one.entries()) {
    const otherPart = other[index] ?? "";
    if (part !== otherPart) return part < otherPart ? -1 : 1;
  }
  return 0;
}

function writeCursor(queryText: string, position: ListPosition): string {
  return Buffer.from(JSON.stringify([1, queryText, position])).toString("base64url");
}

function readCursor(cursor: string, queryText: string): ListPosition {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(cursor, "base64url").toString());
  } catch (cause) {
    throw new ThroughlineError("CURSOR_INVALID", "The cursor cannot be read.", { cause });
  }
  const [version, madeFor, position] = Array.isArray(parsed) ? (parsed as unknown[]) : [];
  if (version !== 1 || madeFor !== queryText || !Array.isArray(position)) {
    throw new ThroughlineError("CURSOR_INVALID", "The cursor belongs to another query or version.");
  }
  return position as ListPosition;
}
