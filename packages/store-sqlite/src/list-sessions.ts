import type { ListQuery, SessionPage } from "@throughline/core";
import type { KeptPayload } from "@throughline/core/store-rows";
import { planList, type ListPlan } from "@throughline/core/store";
import type { Connection } from "./open-connection.ts";
import { slotOf, stateOf } from "./session-rows.ts";
import type { SessionRow } from "./statements.ts";
import type { StoreScene } from "./store-scene.ts";

/** No key is longer, and no character sorts behind this one. */
const lastKey = "\u{10FFFF}".repeat(256);

interface Condition {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

/** One page of sessions, found and sorted by an index and cut by the database. The order is SQLite's own, by bytes. */
export function listSessions(scene: StoreScene, { database }: Connection, query: ListQuery): SessionPage {
  const plan = planList(query);
  const { sql, values } = listStatement(query, plan);
  const rows = database.prepare<unknown[], SessionRow & { readonly entry: KeptPayload }>(sql).all(...values);
  const page = rows.slice(0, plan.limit);
  const last = page.at(-1);
  const position =
    last === undefined
      ? null
      : [plan.sort === "updated" ? -last.updated_at_ms : 0, last.agent_id, last.key, last.session_id];
  return {
    sessions: page.map(({ entry, ...row }) => stateOf(scene.rows, row, entry)),
    nextCursor: position === null || rows.length === page.length ? null : plan.cursorAt(position),
  };
}

/** The statement of a query. Exported for the test that looks at its plan. */
export function listStatement(query: ListQuery, plan: ListPlan): Condition {
  const conditions = [...filters(query), ...(plan.after === null ? [] : [behind(plan)])];
  const order =
    plan.sort === "updated"
      ? "s.updated_slot DESC, s.updated_at_ms DESC, s.agent_id, s.key, s.session_id"
      : "s.agent_id, s.key, s.session_id";
  const where = conditions.map(({ sql }) => sql).join(" AND ");
  // The rows are found first and their entries, which may be large, read for those of the page only.
  const sql = `SELECT s.*, e.entry FROM (SELECT s.* FROM store_sessions s WHERE ${where} ORDER BY ${order} LIMIT ?) s
    CROSS JOIN store_entries e ON e.session = s.session ORDER BY ${order}`;
  return { sql, values: [...conditions.flatMap(({ values }) => values), plan.limit + 1] };
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

function behind({ after, sort }: ListPlan): Condition {
  const [minusTime = 0, agentId = "", key = "", sessionId = ""] = after ?? [];
  const names = "(s.agent_id, s.key, s.session_id) > (?, ?, ?)";
  const place = [agentId, key, sessionId];
  if (sort === "key") return { sql: names, values: place };
  const updatedAtMs = -Number(minusTime);
  const sql = `s.updated_slot <= ? AND s.updated_at_ms <= ? AND (s.updated_at_ms < ? OR ${names})`;
  return { sql, values: [slotOf(updatedAtMs), updatedAtMs, updatedAtMs, ...place] };
}
