import type { ListQuery, SessionRef } from "@throughline/core";
import { assertStoreOptions } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";

/** What a session is listed by. */
export interface ListedSession {
  /** Where the store has the session. */
  readonly ref: SessionRef;
  /** The session's id. */
  readonly sessionId: string;
  /** Its last activity, in milliseconds since 1970. */
  readonly updatedAtMs: number;
  /** True when others follow whose entries do not fit the page. @default false */
  readonly endsPage?: boolean;
}

/** Where a session stands in the order of a list: minus its time or 0, agent, key, session id. */
export type ListPosition = readonly (string | number)[];

/** What a list has to give, for stores that let a database find, sort and cut. */
export interface ListPlan {
  /** Newest first, or by agent, key and session id. */
  readonly sort: "updated" | "key";
  /** The most sessions of the page. */
  readonly limit: number;
  /** Only sessions behind this one; null: from the start. */
  readonly after: ListPosition | null;
  /** The cursor of a page that ends here. */
  cursorAt(position: ListPosition): string;
}

/**
 * Checks a query and reads its cursor.
 * @throws {ThroughlineError} CURSOR_INVALID, INPUT_INVALID
 */
export function planList(query: ListQuery): ListPlan {
  assertStoreOptions("list", query);
  const { sort = "updated", limit = 50, cursor } = query;
  const { namespace, agentId, state, keyPrefix, sinceMs, untilMs } = query;
  const queryText = JSON.stringify([namespace, agentId, state, keyPrefix, sinceMs, untilMs, sort]);
  return {
    sort,
    limit: Math.min(limit, 1000),
    after: cursor === undefined ? null : readCursor(cursor, queryText),
    cursorAt: (position) => writeCursor(queryText, position),
  };
}

/**
 * One page of sessions in a total order. The cursor says where the page before ended, not how many were shown, so a
 * session that stays as it is appears once whatever happens to the others.
 * @throws {ThroughlineError} CURSOR_INVALID, INPUT_INVALID
 */
export function listPage<Session extends ListedSession>(
  all: Iterable<Session>,
  query: ListQuery,
): { readonly sessions: readonly Session[]; readonly nextCursor: string | null } {
  const { sort, limit, after, cursorAt } = planList(query);
  const found = sessionsBehind(all, query, after);
  const sessions = found.slice(0, limit);
  const last = sessions.at(-1);
  const nextCursor = last === undefined || sessions.length === found.length ? null : cursorAt(listPosition(last, sort));
  return { sessions, nextCursor };
}

/**
 * The sessions whose entries fit a page: the first ones, up to the one that fills `pageBytes` and then ends the page. For
 * stores that know how many bytes an entry takes without reading it.
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

/** Those of all that fit the query and stand behind a position, in the query's order. */
export function sessionsBehind<Session extends ListedSession>(
  all: Iterable<Session>,
  query: ListQuery,
  after: ListPosition | null,
): readonly Session[] {
  const { sort = "updated" } = query;
  return Array.from(all)
    .filter((session) => isListed(session, query))
    .map((session) => ({ session, position: listPosition(session, sort) }))
    .filter(({ position }) => after === null || comparePositions(position, after) > 0)
    .toSorted((one, other) => comparePositions(one.position, other.position))
    .map(({ session }) => session);
}

function isListed({ ref, updatedAtMs }: ListedSession, query: ListQuery): boolean {
  const { namespace = "", agentId, state = "active", keyPrefix = "", sinceMs = -Infinity, untilMs = Infinity } = query;
  return (
    ref.namespace === namespace &&
    (agentId === undefined || ref.agentId === agentId) &&
    (state === "any" || (state === "archived") === (ref.archiveId !== undefined)) &&
    ref.key.startsWith(keyPrefix) &&
    updatedAtMs >= sinceMs &&
    updatedAtMs < untilMs
  );
}

/** Where a session stands in a list of this order. */
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
