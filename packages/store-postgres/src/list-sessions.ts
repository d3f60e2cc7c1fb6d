import type { ListQuery, SessionPage } from "@throughline/core";
import { type ListedStates, type ListPlan, planList } from "@throughline/store-kit/internal";
import { agentOf, tenantsOf } from "./layout.ts";
import { purgedAtMs } from "./purged-sources.ts";
import { canHold, refOf, stateOf } from "./row-values.ts";
import { stateColumns } from "./save-function.ts";
import type { StoreContext } from "./store-context.ts";

/** No key is longer than 512 characters, and no character sorts behind U+10FFFF. */
const lastKey = "\u{10FFFF}".repeat(512);

/** PostgreSQL knows these sizes without reading the entries. */
const entryBytes = `coalesce(octet_length(f.entry_coded), 0)
          + coalesce(pg_column_size(f.entry_names), 0) + coalesce(pg_column_size(f.entry_values), 0)`;

interface Statement {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/**
 * Returns one page of sessions. An index finds and sorts them by bytes. The database limits the page, and sends no
 * entry behind the one that fills its bytes.
 */
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
      const asked = { signal: query.signal, isRead: true, agent: agentOf(query) };
      const rows = await pool.run(statement.sql, statement.values, asked);
      const last = Number(rows.at(-1)?.["found"]) > rows.length ? rows.length - 1 : null;
      return rows.map((row, index) => ({
        row,
        ref: refOf(row),
        sessionId: String(row["session_id"]),
        updatedAtMs: Number(row["updated_at_ms"]),
        endsPage: index === last,
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
  { schema, found: { layout }, limits }: StoreContext,
  query: ListQuery,
  { sort, state, sourceDigest, after, limit }: Pick<ListPlan, "sort" | "state" | "sourceDigest" | "after" | "limit">,
): Statement | null {
  const { namespace = "", agentId, keyPrefix = "", sinceMs, untilMs } = query;
  const values: unknown[] = [];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  if (!canHold([namespace, agentId ?? "", keyPrefix])) return null;
  const tenants = tenantsOf(layout, agentOf(query)).map((tenant) => bind(tenant));
  const conditions = [`t.namespace = ${bind(namespace)}`, ...tenants.map((tenant) => `t.tenant = ${tenant}`)];
  if (state !== "any") conditions.push(state === "archived" ? "t.archived" : "NOT t.archived");
  if (agentId !== undefined) conditions.push(`t.agent_id = ${bind(agentId)}`);
  if (keyPrefix !== "")
    conditions.push(`t.key >= ${bind(keyPrefix)} AND t.key <= ${bind(keyPrefix + lastKey.slice(0, 64))}`);
  if (sinceMs !== undefined) conditions.push(since(bind(lowerBound(sinceMs))));
  if (untilMs !== undefined) conditions.push(until(bind(lowerBound(untilMs))));
  if (after !== null) conditions.push(behind(sort, after, bind));
  const order = (table: string): string => {
    const names = `${table}.agent_id, ${table}.key, ${table}.session_id`;
    return sort === "updated" ? `${table}.updated_slot DESC, ${table}.updated_at_ms DESC, ${names}` : names;
  };
  const sessions = sourceDigest === null ? `${schema}.sessions` : ofSource(bind(sourceDigest));
  const columns = (table: string): string => stateColumns.map((column) => `${table}.${column}`).join(", ");
  const found = `SELECT ${columns("t")}, t.updated_slot FROM ${sessions} t WHERE ${conditions.join(" AND ")} ORDER BY ${order("t")} LIMIT ${bind(limit)}`;
  const sql = `SELECT ${columns("p")}, p.found FROM (
      SELECT f.*, count(*) OVER () AS found,
        sum(${entryBytes}) OVER (ORDER BY ${order("f")} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
      FROM (${found}) f
    ) p WHERE coalesce(p.bytes_before, 0) < ${bind(limits.pageBytes)} ORDER BY ${order("p")}`;
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
