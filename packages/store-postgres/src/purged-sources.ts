import type { ListQuery } from "@throughline/core";
import type { RunStatement } from "./connection-pool.ts";
import { databaseNowMs } from "./store-clock.ts";
import type { Layout } from "./layout.ts";
import { canHold, numberOrNull, refOf, textOrNull, type DatabaseRow } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";

/** Limits the rows of one statement that copies marks. */
const sliceRows = 1000;

/** Marks the source of a session that is purged in the transaction, so that a repeated import can leave it purged. */
export async function notePurge(context: StoreContext, run: RunStatement, session: DatabaseRow): Promise<void> {
  const digest = textOrNull(session["source_digest"]);
  if (digest === null) return;
  const { schema, found } = context;
  const ref = refOf(session);
  const nowMs = await databaseNowMs(context, run);
  await run(insertMarks(schema, found.layout), [
    [ref.namespace],
    [digest],
    [ref.agentId],
    [nowMs],
    ...found.layout.values(ref).map((tenant) => [tenant]),
  ]);
}

/** Inserts marks from arrays of their columns. The later time of a source stays. */
function insertMarks(schema: string, { last }: Layout): string {
  const names = `namespace, source_digest, agent_id, purged_at_ms${last("tenant")}`;
  return `INSERT INTO ${schema}.purged_sources AS o (${names})
     SELECT ${names} FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]${last("$5::bigint[]")}) AS u (${names})
     ON CONFLICT (namespace, source_digest, agent_id${last("tenant")})
       DO UPDATE SET purged_at_ms = greatest(o.purged_at_ms, excluded.purged_at_ms)`;
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
  const ofAgent = agentId === undefined ? "" : ` AND p.agent_id = $3${layout.and("p", "$4")}`;
  const agent = agentId === undefined ? [] : [agentId, ...layout.values({ namespace, agentId })];
  const [row] = await pool.run(
    `SELECT max(p.purged_at_ms) AS at_ms FROM ${schema}.purged_sources p
     WHERE p.namespace = $1 AND p.source_digest = $2${ofAgent}`,
    [namespace, digest, ...agent],
    { signal, isRead: true },
  );
  return numberOrNull(row?.["at_ms"]);
}

/** Copies the marks of a namespace and of its imports, or of all namespaces, to another schema. */
export async function copyMarks(
  from: StoreContext,
  to: StoreContext,
  namespace: string | undefined,
  check: () => void,
): Promise<void> {
  for (let after: readonly unknown[] = ["", "", ""]; ;) {
    check();
    const rows = await from.pool.run(
      `SELECT p.namespace, p.source_digest, p.agent_id, p.purged_at_ms FROM ${from.schema}.purged_sources p
       WHERE ($1::text IS NULL OR p.namespace IN ($1, $1 || '.imports'))
         AND (p.namespace, p.source_digest, p.agent_id) > ($2, $3, $4)
       ORDER BY p.namespace, p.source_digest, p.agent_id LIMIT ${sliceRows}`,
      [namespace ?? null, ...after],
      { isRead: true },
    );
    const last = rows.at(-1);
    if (last === undefined) return;
    const { layout } = to.found;
    const tenants = rows.map(
      (row) => layout.values({ namespace: String(row["namespace"]), agentId: String(row["agent_id"]) })[0],
    );
    await to.pool.run(insertMarks(to.schema, layout), [
      ...["namespace", "source_digest", "agent_id", "purged_at_ms"].map((column) => rows.map((row) => row[column])),
      ...(layout.name === "plain" ? [] : [tenants]),
    ]);
    after = [last["namespace"], last["source_digest"], last["agent_id"]];
  }
}
