import type { ListQuery, SessionPage } from "@throughline/core";
import type { ListPosition } from "@throughline/core/internal";
import { planList, refused } from "@throughline/core/store";
import type { KeptPayload, ListedStates, ListPlan } from "@throughline/core/store";
import type { Connection } from "./connection.ts";
import { inOneSnapshot } from "./one-snapshot.ts";
import { refOf } from "./rows.ts";
import { lostEntry, slotOf, stateOf } from "./session-rows.ts";
import { checkedEntry, checkedSession, sessionChecksum } from "./row-checksums.ts";
import { purgedNamespace } from "./rows.ts";
import type { SessionRow } from "./rows.ts";
import type { StoreHandle } from "./store-handle.ts";

/** No key is longer, and no character sorts behind this one. */
const lastKey = "\u{10FFFF}".repeat(256);

interface Condition {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

/** A session whose entry is gone has none. */
type ListedRow = SessionRow & { readonly entry: KeptPayload | null; readonly entryCrc: number | null };

/** One page of sessions, found and sorted by an index and cut by the database. The order is SQLite's own, by bytes. */
export async function listSessions(handle: StoreHandle, listed: ListedStates, query: ListQuery): Promise<SessionPage> {
  const { path, rows } = handle.context;
  const plan = planList(query);
  if (query.namespace === purgedNamespace) return { sessions: [], nextCursor: null };
  let isFirst = true;
  const unchecked = await handle.read(({ statements }) => statements.unchecked, query.signal);
  const page = await listed.page(plan, {
    find: async (after, limit) => {
      if (!isFirst) await new Promise((resolve) => setImmediate(resolve));
      isFirst = false;
      const found = await handle.read(
        ({ database }) => listedRows(database, query, { ...plan, after, limit }),
        query.signal,
      );
      return found.map((row) => ({
        row,
        ref: refOf(row),
        sessionId: row.session_id,
        updatedAtMs: row.updated_at_ms,
      }));
    },
    stateOf: ({ row: { entry, entryCrc, ...row } }) => {
      checkedSession(row, unchecked);
      if (entry === null) throw lostEntry(row);
      return stateOf(rows, row, checkedEntry(row, { entry, crc: entryCrc }, unchecked));
    },
    path,
  });
  if (page.nextCursor === null && isOfAll(query))
    await handle.read(
      (connection) => inOneSnapshot(connection, () => assertWholeIndex(connection, query.namespace ?? "", path)),
      query.signal,
    );
  return page;
}

function isOfAll({ keyPrefix = "", sinceMs, untilMs }: ListQuery): boolean {
  return keyPrefix === "" && sinceMs === undefined && untilMs === undefined;
}

/**
 * Compares the index that lists are read from with the table, in one snapshot, where a list ends that has been through all of
 * it. Damage to single sessions explains a difference: findings name those.
 * @throws {ThroughlineError} STORE_CORRUPT
 */
function assertWholeIndex({ database }: Connection, namespace: string, path: string): void {
  const sums = "count(*) AS count, coalesce(sum(session), 0) + coalesce(sum(updated_slot), 0) AS sum";
  const [listed, there] = ["INDEXED BY store_sessions_updated", "NOT INDEXED"].map((how) =>
    database
      .prepare<[string], { readonly count: number; readonly sum: number }>(
        `SELECT ${sums} FROM store_sessions ${how} WHERE namespace = ?`,
      )
      .get(namespace),
  );
  if (listed !== undefined && there !== undefined && listed.count >= there.count) {
    if (listed.count === there.count && listed.sum === there.sum) return;
    const rows = database.prepare<[], SessionRow>("SELECT * FROM store_sessions NOT INDEXED").iterate();
    for (const row of rows) if (row.crc !== null && row.crc !== sessionChecksum(row)) return;
  }
  throw refused("STORE_CORRUPT", `The index of the sessions of ${path} is damaged: it does not list all of them.`, {
    path,
    namespace,
  });
}

function listedRows(database: Connection["database"], query: ListQuery, plan: FoundPlan): readonly ListedRow[] {
  const { sql, values } = listStatement(query, plan);
  return database.prepare<unknown[], ListedRow>(sql).all(...values);
}

/** What is to be found: at most `limit` sessions behind `after`. */
type FoundPlan = Pick<ListPlan, "sort" | "after" | "limit">;

/** The statement of a query. Exported for the test that looks at its plan. */
export function listStatement(query: ListQuery, plan: FoundPlan): Condition {
  const conditions = [...filters(query), ...(plan.after === null ? [] : [behind(plan.sort, plan.after)])];
  const order =
    plan.sort === "updated"
      ? "s.updated_slot DESC, s.updated_at_ms DESC, s.agent_id, s.key, s.session_id"
      : "s.agent_id, s.key, s.session_id";
  const where = conditions.map(({ sql }) => sql).join(" AND ");
  // The rows are found first and their entries, which may be large, read for those of the page only.
  const sql = `SELECT s.*, e.entry, e.crc AS entryCrc FROM (SELECT s.* FROM store_sessions s WHERE ${where} ORDER BY ${order} LIMIT ?) s
    LEFT JOIN store_entries e ON e.session = s.session ORDER BY ${order}`;
  return { sql, values: [...conditions.flatMap(({ values }) => values), plan.limit] };
}

function filters({
  namespace = "",
  agentId,
  state = "active",
  keyPrefix = "",
  sinceMs,
  untilMs,
}: ListQuery): Condition[] {
  const found: Condition[] = [{ sql: "s.namespace = ?", values: [namespace] }];
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

/** Changes whenever something was committed, by this handle or by another one. Asking SQLite costs 3 microseconds. */
export function createEntriesMark(handle: StoreHandle): () => Promise<string> {
  let commits = 0;
  handle.follow(() => commits++);
  // What SQLite tells holds for one connection.
  const connections = new WeakMap<Connection, number>();
  let opened = 0;
  return () =>
    handle.read((connection) => {
      const known = connections.get(connection) ?? ++opened;
      connections.set(connection, known);
      return `${known} ${commits} ${String(connection.database.pragma("data_version", { simple: true }))}`;
    });
}
