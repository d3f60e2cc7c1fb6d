import type { ListQuery } from "@throughline/core";
import type { PurgedSource, PurgesOptions } from "@throughline/core/internal";
import type { RunStatement } from "./connection-pool.ts";
import { databaseNowMs } from "./store-clock.ts";
import { agentOf, type Layout, tenantsOf } from "./layout.ts";
import { canHold, numberOrNull, refOf, textOrNull, type DatabaseRow } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";

/** Limits the rows of one statement that copies marks. */
const sliceRows = 1000;

/** Marks the source of a session that is purged in the transaction, so that a repeated import can leave it purged. */
export async function notePurge(context: StoreContext, run: RunStatement, session: DatabaseRow): Promise<void> {
  const digest = textOrNull(session["source_digest"]);
  if (digest === null) return;
  const { schema, found } = context;
  const { namespace, agentId } = refOf(session);
  const purgedAtMs = await databaseNowMs(context, run);
  const { sql, values } = insertMarks(schema, found.layout, [{ namespace, agentId, digest, purgedAtMs }]);
  await run(sql, values);
}

/**
 * Inserts marks. The later time of a source stays. Citus sends VALUES to the nodes as they are, and would copy the rows of
 * a SELECT, which row security does not allow.
 */
function insertMarks(
  schema: string,
  layout: Layout,
  marks: readonly PurgeMark[],
): { readonly sql: string; readonly values: readonly unknown[] } {
  const values: unknown[] = [];
  const rows = marks.map((mark) => {
    const row = [mark.namespace, mark.digest, mark.agentId, mark.purgedAtMs, ...layout.values(mark)];
    return `(${row.map((value) => `$${values.push(value)}`).join(", ")})`;
  });
  const sql = `INSERT INTO ${schema}.purged_sources AS o (namespace, source_digest, agent_id, purged_at_ms${layout.last("tenant")})
     VALUES ${rows.join(", ")}
     ON CONFLICT (namespace, source_digest, agent_id${layout.last("tenant")})
       DO UPDATE SET purged_at_ms = greatest(o.purged_at_ms, excluded.purged_at_ms)`;
  return { sql, values };
}

/**
 * Returns the time of the last purge of a source, in UTC milliseconds, or null. A list reads its sessions first. A
 * session that is purged in between is then on the page, and never missing without a mark.
 */
export async function purgedAtMs(
  { schema, pool, found: { layout } }: StoreContext,
  digest: string,
  { namespace = "", agentId, signal }: ListQuery,
): Promise<number | null> {
  if (!canHold([namespace, agentId ?? ""])) return null;
  const agent = agentOf({ namespace, agentId });
  const ofAgent = agent === undefined ? "" : ` AND p.agent_id = $3${layout.and("p", "$4")}`;
  const [row] = await pool.run(
    `SELECT max(p.purged_at_ms) AS at_ms FROM ${schema}.purged_sources p
     WHERE p.namespace = $1 AND p.source_digest = $2${ofAgent}`,
    [namespace, digest, ...(agent === undefined ? [] : [agent.agentId, ...layout.values(agent)])],
    { signal, isRead: true, agent },
  );
  return numberOrNull(row?.["at_ms"]);
}

/** Holds a mark with its namespace. */
interface PurgeMark extends PurgedSource {
  readonly namespace: string;
}

/** Yields the marks of a namespace, or of all namespaces, in slices. */
export async function* readPurges(
  { schema, pool, found: { layout } }: StoreContext,
  { namespace, agentId, signal }: PurgesOptions,
): AsyncGenerator<readonly PurgeMark[]> {
  const agent = namespace === undefined ? undefined : agentOf({ namespace, agentId });
  for (let after: readonly string[] = ["", "", ""]; ;) {
    const rows = await pool.run(
      `SELECT p.namespace, p.source_digest, p.agent_id, p.purged_at_ms FROM ${schema}.purged_sources p
       WHERE ($1::text IS NULL OR p.namespace = $1) AND ($2::text IS NULL OR p.agent_id = $2)
         AND (p.namespace, p.source_digest, p.agent_id) > ($3, $4, $5)${agent === undefined ? "" : layout.and("p", "$6")}
       ORDER BY p.namespace, p.source_digest, p.agent_id LIMIT ${sliceRows}`,
      [namespace ?? null, agentId ?? null, ...after, ...tenantsOf(layout, agent)],
      { signal, isRead: true, agent },
    );
    const marks = rows.map((row) => ({
      namespace: String(row["namespace"]),
      agentId: String(row["agent_id"]),
      digest: String(row["source_digest"]),
      purgedAtMs: numberOrNull(row["purged_at_ms"]) ?? 0,
    }));
    const last = marks.at(-1);
    if (last === undefined) return;
    yield marks;
    after = [last.namespace, last.digest, last.agentId];
  }
}

/** Adds marks of another store. The later time of a source stays. */
export async function addPurges({ schema, pool, found }: StoreContext, marks: readonly PurgeMark[]): Promise<void> {
  for (let from = 0; from < marks.length; from += sliceRows) {
    const slice = marks.slice(from, from + sliceRows);
    const { sql, values } = insertMarks(schema, found.layout, slice);
    const tenants = new Set(slice.map((mark) => found.layout.values(mark).join()));
    await pool.run(sql, values, { agent: tenants.size === 1 ? slice[0] : undefined });
  }
}

/** Copies the marks of a namespace, or of all namespaces, to another schema. */
export async function copyPurges(
  from: StoreContext,
  to: StoreContext,
  namespace: string | undefined,
  check: () => void,
): Promise<void> {
  for await (const marks of readPurges(from, namespace === undefined ? {} : { namespace })) {
    check();
    await addPurges(to, marks);
  }
}
