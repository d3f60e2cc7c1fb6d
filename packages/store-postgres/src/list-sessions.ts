import type { ListQuery, SessionPage } from "@throughline/core";
import { type ListedStates, type ListPlan, planList } from "@throughline/store-kit/internal";
import { purgedAtMs } from "./purged-sources.ts";
import { canHold, refOf, stateOf } from "./row-values.ts";
import { stateColumns } from "./save-function.ts";
import type { StoreContext } from "./store-context.ts";

/** No key is longer than 512 characters, and no character sorts behind U+10FFFF. */
const lastKey = "\u{10FFFF}".repeat(512);

interface Statement {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** Returns one page of sessions. An index finds and sorts them by bytes, and the database limits the page. */
export async function listSessions(
  context: StoreContext,
  listed: ListedStates,
  query: ListQuery,
): Promise<SessionPage> {
  const { pool, rows: coder } = context;
  const plan = planList(query);
  const page = await listed.page(plan, {
    find: async (after, limit) => {
      const statement = listStatement(context, query, { ...plan, after, limit });
      if (statement === null) return [];
      const rows = await pool.run(statement.sql, statement.values, { signal: query.signal, isRead: true });
      return rows.map((row) => ({
        row,
        ref: refOf(row),
        sessionId: String(row["session_id"]),
        updatedAtMs: Number(row["updated_at_ms"]),
      }));
    },
    stateOf: ({ row }) => stateOf(coder, row),
    path: pool.place,
  });
  if (plan.purgedSource === null) return page;
  return { ...page, purgedAtMs: await purgedAtMs(context, plan.purgedSource, query) };
}

/** Builds the statement that finds at most `limit` sessions behind `after`. Returns null if no session can match. */
function listStatement(
  { schema, found: { layout } }: StoreContext,
  query: ListQuery,
  { sort, state, sourceDigest, after, limit }: Pick<ListPlan, "sort" | "state" | "sourceDigest" | "after" | "limit">,
): Statement | null {
  const { namespace = "", agentId, keyPrefix = "", sinceMs, untilMs } = query;
  const values: unknown[] = [];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  if (!canHold([namespace, agentId ?? "", keyPrefix])) return null;
  const tenants = agentId === undefined ? [] : layout.values({ namespace, agentId }).map((tenant) => bind(tenant));
  const conditions = [`t.namespace = ${bind(namespace)}`, ...tenants.map((tenant) => `t.tenant = ${tenant}`)];
  if (state !== "any") conditions.push(state === "archived" ? "t.archived" : "NOT t.archived");
  if (agentId !== undefined) conditions.push(`t.agent_id = ${bind(agentId)}`);
  if (keyPrefix !== "")
    conditions.push(`t.key >= ${bind(keyPrefix)} AND t.key <= ${bind(keyPrefix + lastKey.slice(0, 64))}`);
  if (sinceMs !== undefined) conditions.push(since(bind(lowerBound(sinceMs))));
  if (untilMs !== undefined) conditions.push(until(bind(lowerBound(untilMs))));
  if (after !== null) conditions.push(behind(sort, after, bind));
  const order =
    sort === "updated"
      ? "t.updated_slot DESC, t.updated_at_ms DESC, t.agent_id, t.key, t.session_id"
      : "t.agent_id, t.key, t.session_id";
  const sessions = sourceDigest === null ? `${schema}.sessions` : ofSource(bind(sourceDigest));
  const columns = stateColumns.map((column) => `t.${column}`).join(", ");
  const sql = `SELECT ${columns} FROM ${sessions} t WHERE ${conditions.join(" AND ")} ORDER BY ${order} LIMIT ${bind(limit)}`;
  return { sql, values };

  /** OFFSET makes the index of sources find the few sessions of a source, whichever index has the order of the list. */
  function ofSource(digest: string): string {
    const own = tenants.map((tenant) => ` AND s.tenant = ${tenant}`).join("");
    return `(SELECT * FROM ${schema}.sessions s WHERE s.source_digest = ${digest}${own} OFFSET 0)`;
  }
}

function since(bound: string): string {
  return `t.updated_slot >= ${bound}::bigint / 60000 AND t.updated_at_ms >= ${bound}::bigint`;
}

function until(bound: string): string {
  return `t.updated_slot <= ${bound}::bigint / 60000 AND t.updated_at_ms < ${bound}::bigint`;
}

function behind(
  sort: "updated" | "key",
  [minusTime = 0, agentId = "", key = "", sessionId = ""]: readonly (string | number)[],
  bind: (value: unknown) => string,
): string {
  const names = `(t.agent_id, t.key, t.session_id) > (${bind(agentId)}, ${bind(key)}, ${bind(sessionId)})`;
  if (sort === "key") return names;
  const time = bind(-Number(minusTime));
  return `t.updated_slot <= ${time}::bigint / 60000 AND t.updated_at_ms <= ${time}::bigint AND (t.updated_at_ms < ${time}::bigint OR ${names})`;
}

/** Rounds up, because stored times are whole milliseconds, and limits the value to the range of the column. */
function lowerBound(timeMs: number): number {
  if (Number.isNaN(timeMs)) return 0;
  return Math.max(0, Math.min(Math.ceil(timeMs), Number.MAX_SAFE_INTEGER));
}
