import { planList } from "@throughline/core/store";
import { readSearchQuery } from "@throughline/core/store-search";
import type { SessionRef } from "@throughline/core";
import { createPostgresStore, type PostgresPool } from "@throughline/store-postgres";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { listStatement } from "../src/list-sessions.ts";
import { candidateStatement } from "../src/search-query.ts";
import { newSchema } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

function refOf(index: number): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:plan-${index}` };
}

/** One connection that tells the plan of everything it runs, also inside functions. */
async function explainingPool(): Promise<{
  readonly pool: PostgresPool;
  readonly plans: string[];
  end(): Promise<void>;
}> {
  const inner = new pg.Pool({ connectionString: url, max: 1 });
  const plans: string[] = [];
  const client = await inner.connect();
  client.on("notice", ({ message = "" }) => plans.push(message));
  await client.query(`LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
    SET auto_explain.log_analyze = on; SET client_min_messages = log`);
  client.release();
  return { pool: inner, plans, end: () => inner.end() };
}

/** The tables a plan goes through whole. A function's own answer and arrays are none. */
function scansOf(plans: readonly string[], schema: string): string[] {
  return plans
    .filter((plan) => plan.includes(`"${schema}"`) || plan.includes(schema))
    .flatMap((plan) => plan.split("\n"))
    .filter((line) => /Seq Scan on (sessions|records|keyed_appends|payloads|search_documents)/.test(line));
}

describe.skipIf(url === "")(
  `query plans on PostgreSQL${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it.each(["empty", "full"])(
      "a turn, a keyed turn, a window, a page and a load go through indexes, on %s tables",
      async (size) => {
        const schema = newSchema();
        await using writer = createPostgresStore({ url, schema, partitions: 4 });
        await writer.save(refOf(0), { sessionId: "plan-0" }, { ifRevision: null });
        if (size === "full") await fill(schema);
        const { pool, plans, end } = await explainingPool();
        await using store = createPostgresStore({ pool, schema, migrate: false, notify: false });
        const draft = { type: "message", message: { role: "user", content: "words to be found" } };
        // Often enough for the plans that a connection keeps.
        for (let turn = 0; turn < 8; turn++) {
          await store.append(refOf(0), [draft, draft], { windowFromSeq: 1 });
          await store.append(refOf(0), [draft], { idempotencyKey: `k${turn}`, entry: { model: "m" } });
          await store.readWindow(refOf(0));
          for await (const _page of store.read(refOf(0), { order: "descending", limit: 3 }));
          await store.load(refOf(0));
        }
        expect(plans.length).toBeGreaterThan(40);
        expect(scansOf(plans, schema)).toEqual([]);
        await end();
      },
    );

    it("lists and searches of a full store go through indexes", async () => {
      const schema = newSchema();
      await using writer = createPostgresStore({ url, schema, partitions: 4 });
      await writer.save(refOf(0), { sessionId: "plan-0" }, { ifRevision: null });
      await fill(schema);
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const planOf = async (
        statement: { readonly sql: string; readonly values: readonly unknown[] } | null,
      ): Promise<string> => {
        const rows = await client.query<{ "QUERY PLAN": string }>(`EXPLAIN ${statement?.sql}`, [
          ...(statement?.values ?? []),
        ]);
        return rows.rows.map((row) => row["QUERY PLAN"]).join("\n");
      };
      const quoted = `"${schema}"`;
      for (const [query, index] of [
        [{}, "sessions_listed"],
        [{ agentId: "main" }, "sessions_listed_by_agent"],
        [{ state: "archived" }, "sessions_listed"],
        [{ sort: "key", agentId: "main" }, "sessions_address"],
        [{ sort: "key", agentId: "main", keyPrefix: "agent:main:plan-7" }, "sessions_address"],
      ] as const) {
        const plan = await planOf(listStatement(quoted, query, planList(query)));
        expect(plan, JSON.stringify(query)).toContain(index);
        expect(plan).not.toContain("Seq Scan");
      }
      const query = { text: "rare4711" };
      const plan = await planOf(candidateStatement(quoted, query, readSearchQuery(query), { size: 50, offset: 0 }));
      expect(plan).toContain("search_documents_words");
      expect(plan).not.toContain("Seq Scan");
      await client.end();
    });

    /** Ten thousand sessions and records, with statistics. */
    async function fill(schema: string): Promise<void> {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(`
        INSERT INTO "${schema}".sessions (session_no, namespace, agent_id, key, session_id, revision, last_seq, created_at_ms, updated_at_ms, entry_names, entry_values)
          SELECT 1000 + n, '', 'agent' || n % 7, 'agent:main:plan-' || n, 'filled-' || n, 1, 1, n * 1000, n * 1000, ARRAY['"sessionId"'], ARRAY['"filled"'] FROM generate_series(1, 10000) n;
        INSERT INTO "${schema}".records (session_no, seq, stored_at_ms, crc, bytes, message_number, side, id, type, rest)
          SELECT 1000 + n, 1, 0, 0, 10, 1, false, 'r' || n, 'message', '"timestamp":""}' FROM generate_series(1, 10000) n;
        INSERT INTO "${schema}".keyed_appends (session_no, key, digest, number, at_ms, first_seq, last_seq, durability, revision, fence)
          SELECT 1000 + n, 'k', '', 1, 0, 1, 1, 'disk', 1, 0 FROM generate_series(1, 10000) n;
        INSERT INTO "${schema}".search_documents (session_no, seq, words) SELECT 1000 + n, 1, ('''rare' || n || ''':1')::tsvector FROM generate_series(1, 10000) n;
        ANALYZE "${schema}".sessions; ANALYZE "${schema}".records; ANALYZE "${schema}".keyed_appends; ANALYZE "${schema}".search_documents`);
      await client.end();
    }
  },
);
