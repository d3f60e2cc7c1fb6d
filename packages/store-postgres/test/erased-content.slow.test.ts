import { createPostgresStore } from "@throughline/store-postgres";
import type { SessionRef } from "@throughline/core";
import { describe, expect, inject, it } from "vitest";
import { openSecured, own } from "./secured-store.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

function refOf(name: string): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:${name}` };
}

/** Columns whose statistics hold the word. */
async function statisticsWith(schema: string, word: string): Promise<readonly string[]> {
  const columns = ["histogram_bounds", "most_common_vals", "most_common_elems"].map((name) => `${name}::text ~ $2`);
  return withClient(url, async (client) => {
    const sql = `SELECT tablename || '.' || attname AS name FROM pg_stats WHERE schemaname = $1 AND (${columns.join(" OR ")})`;
    const { rows } = await client.query(sql, [schema, word]);
    return rows.map((row: { readonly name: string }) => row.name);
  });
}

const tables = ["sessions", "records", "payloads", "keyed_appends", "search_documents", "search_positions"] as const;

async function rowsOf(schema: string, table: string, sessionNo: string): Promise<number> {
  return withClient(url, async (client) => {
    const { rowCount } = await client.query(`SELECT FROM "${schema}".${table} WHERE session_no = $1`, [sessionNo]);
    return rowCount ?? 0;
  });
}

async function analyze(schema: string): Promise<void> {
  await withClient(url, async (client) => {
    const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = $1", [schema]);
    for (const { tablename } of rows as { readonly tablename: string }[])
      await client.query(`ANALYZE "${schema}".${tablename}`);
  });
}

describe.skipIf("unavailable" in place)("erased content", () => {
  it.each(["plain", "tenant"] as const)(
    "is in no statistics, and the index that holds its words is named until it is rebuilt: %s",
    async (layout) => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema, layout, notify: false });
      const refs = Array.from({ length: 12 }, (_, index) => refOf(`s${index}`));
      for (const [index, ref] of refs.entries()) {
        await store.save(ref, { sessionId: `s${index}`, label: `planted${index}` }, { ifRevision: null });
        await store.append(ref, [{ type: "message", message: { role: "user", content: `planted${index} words` } }]);
      }
      const search = (): Promise<unknown[]> => Array.fromAsync(store.search?.search({ text: "words" }) ?? []);
      expect((await search()).length).toBeGreaterThan(0);
      await analyze(schema);
      expect(await statisticsWith(schema, "planted")).toEqual([]);
      const findings = () => Array.fromAsync(store.maintenance?.verify() ?? []);
      expect(await findings()).toEqual([]);
      for (const ref of refs) await store.remove(ref, { purge: true });
      const [left, ...others] = await findings();
      expect([left?.code, others]).toEqual(["ERASURE_INCOMPLETE", []]);
      const [, statement = ""] = /`(REINDEX [^`]*)`/.exec(left?.message ?? "") ?? [];
      await withClient(url, (client) => client.query(statement));
      expect(await findings()).toEqual([]);
    },
  );

  it.each(["plain", "tenant"] as const)(
    "is gone, and what is left of it reported, where a role under row security redacts or purges it: %s",
    async (layout) => {
      const secured = await openSecured(url, { layout });
      try {
        const { owner, schema, roleUrl } = secured;
        await using store = createPostgresStore({ url: roleUrl, schema, migrate: false, notify: false });
        const codes = async (of: typeof store): Promise<readonly string[]> =>
          (await Array.fromAsync(of.maintenance.verify())).map(({ code }) => code);
        const heir = { ...own, key: "agent:main:heir" };
        const numberOf = (column: string, { key }: SessionRef): Promise<string> =>
          withClient(url, async (client) => {
            const sql = `SELECT ${column} AS no FROM "${schema}".sessions WHERE key = $1`;
            const { rows } = await client.query<{ no: string }>(sql, [key]);
            return String(rows[0]?.no);
          });
        const sessionNo = await numberOf("session_no", own);
        // A session that was purged, whose records its fork still has.
        const baseNo = await numberOf("base_nos[1]", heir);
        const redact = async (): Promise<void> => {
          const { records = [] } = await store.append(own, [
            { type: "message", message: { role: "user", content: "planted" } },
          ]);
          expect(await Array.fromAsync(store.search?.search({ text: "planted" }) ?? [])).toHaveLength(1);
          await store.redact(own, [records[0]?.id ?? ""], { reason: "test" });
        };
        const purge = async (): Promise<void> => {
          await store.remove(own, { purge: true });
          expect(await rowsOf(schema, "records", baseNo)).toBe(1);
          await store.remove(heir, { purge: true });
          expect(await rowsOf(schema, "records", baseNo)).toBe(0);
        };
        const erasures = [
          [redact, [1, 4, 1, 1, 2, 1]],
          [purge, [0, 0, 0, 0, 0, 0]],
        ] as const;
        for (const [erase, left] of erasures) {
          expect(await codes(owner)).toEqual([]);
          await erase();
          expect(await Promise.all(tables.map((table) => rowsOf(schema, table, sessionNo)))).toEqual(left);
          expect([await codes(store), await codes(owner)]).toEqual([["ERASURE_INCOMPLETE"], ["ERASURE_INCOMPLETE"]]);
          await withClient(url, (client) =>
            client.query(`REINDEX INDEX CONCURRENTLY "${schema}".search_documents_words`),
          );
        }
      } finally {
        await secured.dispose();
      }
    },
  );
});
