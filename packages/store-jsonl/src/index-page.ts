import type { ListQuery } from "@throughline/core";
import type { ListPlan } from "@throughline/store-kit/internal";

interface Statement {
  readonly sql: string;
  readonly values: readonly (string | number | Uint8Array)[];
}

export type WantedSessions = Pick<ListPlan, "sort" | "after" | "limit" | "sourceDigest">;

export type IndexSample = readonly {
  readonly id: string;
  readonly fileName: string;
  readonly seen: string;
  readonly place: number;
}[];

export const sessionColumns = "id, line, folded, summary, seen";

/** Encodes a key so that SQLite, which compares blobs by bytes, sorts it by UTF-16 code units as `sessionsBehind` does. */
export function keyOrder(key: string): Uint8Array {
  return Buffer.from(key, "utf16le").swap16();
}

const longerThanAnyKey = Buffer.alloc(2048, 0xff);

/** Returns one statement per requested state, so that an index can find, sort and limit the rows. */
export function pageStatements(query: ListQuery, plan: WantedSessions, agentId: string): readonly Statement[] {
  const { state = "active", keyPrefix = "", sinceMs, untilMs } = query;
  const conditions: Statement[] = [{ sql: "seen IS NOT NULL", values: [] }];
  if (keyPrefix !== "") {
    const from = keyOrder(keyPrefix);
    conditions.push({
      sql: "key_order >= ? AND key_order <= ?",
      values: [from, Buffer.concat([from, longerThanAnyKey])],
    });
  }
  if (sinceMs !== undefined) conditions.push({ sql: "updated_ms >= ?", values: [sinceMs] });
  if (untilMs !== undefined) conditions.push({ sql: "updated_ms < ?", values: [untilMs] });
  if (plan.after !== null) conditions.push(behind(plan, agentId));
  const where = conditions.map(({ sql }) => ` AND (${sql})`).join("");
  const values = conditions.flatMap((condition) => condition.values);
  const order = plan.sort === "updated" ? "updated_ms DESC, key_order, id" : "key_order, id";
  const states = state === "any" ? [0, 1] : [state === "archived" ? 1 : 0];
  return states.map((archived) => ({
    sql: `SELECT ${sessionColumns} FROM sessions WHERE archived = ?${where} ORDER BY ${order} LIMIT ?`,
    values: [archived, ...values, plan.limit],
  }));
}

/**
 * Builds the condition for rows after a position: minus the time or 0, agent, key, session id. All rows here are of one
 * agent.
 */
function behind({ after, sort }: WantedSessions, agentId: string): Statement {
  const [minusTime = 0, afterAgent = "", key = "", sessionId = ""] = after ?? [];
  const place = [keyOrder(String(key)), String(sessionId)];
  const rest: Statement =
    agentId === afterAgent
      ? { sql: "(key_order, id) > (?, ?)", values: place }
      : { sql: agentId > String(afterAgent) ? "1" : "0", values: [] };
  if (sort === "key") return rest;
  const updatedMs = -Number(minusTime);
  return { sql: `updated_ms <= ? AND (updated_ms < ? OR ${rest.sql})`, values: [updatedMs, updatedMs, ...rest.values] };
}
