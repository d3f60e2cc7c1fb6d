import type { ListQuery, SessionPage } from "@throughline/core";
import { hasErrorCode } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import type { ListedSession, ListPlan, ListPosition } from "@throughline/store-kit/internal";
import { ListedStates, planList, withinBytes } from "@throughline/store-kit/internal";
import { SessionCheck } from "./check-sessions.ts";
import type { Connection } from "./connection.ts";
import { inOneSnapshot } from "./one-snapshot.ts";
import { lastPurgeMs } from "./purged-sources.ts";
import { checkedEntry } from "./row-checksums.ts";
import { purgedNamespace, refOf } from "./rows.ts";
import type { EntryRow, SessionRow } from "./rows.ts";
import { listedSession, lostEntry, slotOf, stateOf } from "./session-rows.ts";
import type { StoreHandle } from "./store-handle.ts";

/** This text sorts behind every key: no key is longer, and no character sorts behind this one. */
const lastKey = "\u{10FFFF}".repeat(256);

interface Condition {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

type ListedRow = SessionRow & { readonly entryBytes: number };

interface FoundSession extends ListedSession {
  readonly row: SessionRow;
  /** Undefined for a session whose entry is lost. */
  readonly entry: EntryRow | undefined;
}

/**
 * Lists the sessions of one handle in pages. An index finds and sorts them, in the byte order of SQLite. At the end of
 * a list, the table is compared with its indexes.
 */
export class SessionLists {
  readonly #handle: StoreHandle;
  readonly #listed: ListedStates;
  readonly #check: SessionCheck;

  constructor(handle: StoreHandle) {
    this.#handle = handle;
    this.#listed = new ListedStates((event) => handle.life.announce(event));
    this.#check = new SessionCheck(handle, this.#listed);
  }

  async page(query: ListQuery): Promise<SessionPage> {
    const { path, rows, limits } = this.#handle.context;
    const plan = planList(query);
    const purge = await this.#purgeOf(plan.purgedSource, query);
    if (query.namespace === purgedNamespace) return { sessions: [], nextCursor: null, ...purge };
    let isFirst = true;
    const page = await this.#listed.page(plan, {
      find: async (after, limit) => {
        if (!isFirst) await new Promise((resolve) => setImmediate(resolve));
        isFirst = false;
        const find = (connection: Connection): readonly FoundSession[] =>
          inOneSnapshot(connection, () =>
            foundSessions(connection, query, { ...plan, after, limit }, limits.pageBytes),
          );
        return this.#handle.read(find, query.signal);
      },
      stateOf: ({ row, entry }) => {
        listedSession(row);
        if (entry === undefined) throw lostEntry(row);
        return stateOf(rows, row, checkedEntry(row, entry));
      },
      path,
    });
    // A list by source costs the same among any number of sessions, so it has a check of its own.
    if (page.nextCursor === null && plan.sourceDigest === null)
      await this.#check.run(isOfAll(query), page.sessions.length, query.signal);
    return { ...page, ...purge };
  }

  async #purgeOf(source: string | null, query: ListQuery): Promise<Pick<SessionPage, "purgedAtMs">> {
    if (source === null) return {};
    return {
      purgedAtMs: await this.#handle.read((connection) => lastPurgeMs(connection, source, query), query.signal),
    };
  }
}

/**
 * Returns the sessions that fit a page, with their entries. The entries of the other sessions are not read, because
 * they may be large.
 */
function foundSessions(
  connection: Connection,
  query: ListQuery,
  plan: FoundPlan,
  pageBytes: number,
): readonly FoundSession[] {
  if (plan.sourceDigest !== null) assertSource(connection, query, plan.sourceDigest);
  const found = listedRows(connection, query, plan).map(({ entryBytes, ...row }) => {
    const { session_id: sessionId, updated_at_ms: updatedAtMs } = row;
    return { row, entryBytes, ref: refOf(row), sessionId, updatedAtMs };
  });
  return withinBytes(found, ({ entryBytes }) => entryBytes, pageBytes).map((one) => ({
    ...one,
    entry: connection.statements.findEntry.get(one.row.session),
  }));
}

/** @throws {ThroughlineError} STORE_CORRUPT when the two indexes of a source have different numbers of sessions */
function assertSource({ statements }: Connection, { namespace = "" }: ListQuery, digest: string): void {
  if (statements.countBySource.get(namespace, digest) === statements.countByDigest.get(digest, namespace)) return;
  throw refused("STORE_CORRUPT", "An index of the imported sessions is damaged: it does not list all of a source.", {});
}

function isOfAll({ namespace = "", agentId, state, keyPrefix = "", sinceMs, untilMs }: ListQuery): boolean {
  const isOfPart = namespace !== "" || agentId !== undefined || state === "archived" || keyPrefix !== "";
  return !isOfPart && sinceMs === undefined && untilMs === undefined;
}

/**
 * Returns at least `limit` rows if there are as many. A damaged row is never the last one, because a cursor behind it
 * could not say where the list continues.
 */
function listedRows(connection: Connection, query: ListQuery, plan: FoundPlan): readonly ListedRow[] {
  const { sql, values } = listStatement(query, plan);
  const rows = connection.database.prepare<unknown[], ListedRow>(sql).all(...values);
  const last = rows.length < plan.limit ? undefined : rows.at(-1);
  if (last === undefined || isIntact(last)) return rows;
  return listedRows(connection, query, { ...plan, limit: plan.limit * 2 });
}

function isIntact(row: SessionRow): boolean {
  try {
    listedSession(row);
    return true;
  } catch (error) {
    if (hasErrorCode(error, "STORE_CORRUPT")) return false;
    throw error;
  }
}

/** Asks for at most `limit` sessions behind `after`. */
type FoundPlan = Pick<ListPlan, "sort" | "state" | "sourceDigest" | "after" | "limit">;

/** Returns the statement of a query. It is exported for the test of its plan. */
export function listStatement(query: ListQuery, plan: FoundPlan): Condition {
  const conditions = [...filters(query, plan), ...(plan.after === null ? [] : [behind(plan.sort, plan.after)])];
  const order =
    plan.sort === "updated"
      ? "s.updated_slot DESC, s.updated_at_ms DESC, s.agent_id, s.key, s.session_id"
      : "s.agent_id, s.key, s.session_id";
  // A source has few sessions. Without the name, SQLite may read all sessions in the order of the list instead.
  const table = plan.sourceDigest === null ? "store_sessions s" : "store_sessions s INDEXED BY store_sessions_source";
  const where = conditions.map(({ sql }) => sql).join(" AND ");
  // SQLite reads the size of an entry from its header, without the content.
  const sql = `SELECT s.*, coalesce(octet_length(e.entry), 0) AS entryBytes
    FROM (SELECT s.* FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT ?) s
    LEFT JOIN store_entries e ON e.session = s.session ORDER BY ${order}`;
  return { sql, values: [...conditions.flatMap(({ values }) => values), plan.limit] };
}

function filters(
  { namespace = "", agentId, keyPrefix = "", sinceMs, untilMs }: ListQuery,
  { state, sourceDigest }: FoundPlan,
): Condition[] {
  const found: Condition[] = [{ sql: "s.namespace = ?", values: [namespace] }];
  if (sourceDigest !== null) found.push({ sql: "s.source_digest = ?", values: [sourceDigest] });
  if (state !== "any") found.push({ sql: "s.archived = ?", values: [state === "archived" ? 1 : 0] });
  if (agentId !== undefined) found.push({ sql: "s.agent_id = ?", values: [agentId] });
  if (keyPrefix !== "") found.push({ sql: "s.key >= ? AND s.key <= ?", values: [keyPrefix, keyPrefix + lastKey] });
  if (sinceMs !== undefined)
    found.push({ sql: "s.updated_slot >= ? AND s.updated_at_ms >= ?", values: [slotOf(sinceMs), sinceMs] });
  if (untilMs !== undefined)
    found.push({ sql: "s.updated_slot <= ? AND s.updated_at_ms < ?", values: [slotOf(untilMs), untilMs] });
  return found;
}

function behind(
  sort: ListPlan["sort"],
  [minusTime = 0, agentId = "", key = "", sessionId = ""]: ListPosition,
): Condition {
  const names = "(s.agent_id, s.key, s.session_id) > (?, ?, ?)";
  const place = [agentId, key, sessionId];
  if (sort === "key") return { sql: names, values: place };
  const updatedAtMs = -Number(minusTime);
  const sql = `s.updated_slot <= ? AND s.updated_at_ms <= ? AND (s.updated_at_ms < ? OR ${names})`;
  return { sql, values: [slotOf(updatedAtMs), updatedAtMs, updatedAtMs, ...place] };
}

/** Returns a text that changes with every commit, of this handle or another one. Asking SQLite costs 3 microseconds. */
export function createEntriesMark(handle: StoreHandle): () => Promise<string> {
  let commits = 0;
  handle.follow(() => commits++);
  // SQLite's data version is a number of one connection.
  const connections = new WeakMap<Connection, number>();
  let opened = 0;
  return () =>
    handle.read((connection) => {
      const known = connections.get(connection) ?? ++opened;
      connections.set(connection, known);
      return `${known} ${commits} ${String(connection.database.pragma("data_version", { simple: true }))}`;
    });
}
