import { createPostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { openSecured, take, theirs, type SecuredStore } from "./secured-store.ts";
import { analyzeSchema } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

/** Columns with contents, and how a comparison reaches into them. */
const contents: Readonly<Record<string, readonly string[]>> = {
  sessions: ["entry_values[1]", "entry_names[1]", "entry_coded", "turn_owner", "session_id", "head_id"],
  records: ["rest", "source", "coded", "role", "tool_name", "rest_hash"],
  payloads: ["content"],
  keyed_appends: ["digest", "head_id", "turn_owner"],
  files: ["file_id", "lower(file_id)"],
  file_chunks: ["content"],
  file_references: ["file_id", "lower(file_id)"],
};

/** Plans that read tables from end to end, by index and by bitmap. */
const plans: readonly string[] = [
  "SET enable_seqscan = on",
  "SET enable_seqscan = off",
  "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off",
  "SET cpu_operator_cost = 0",
];

describe.skipIf(url === "").each(["plain", "tenant"] as const)(
  `what EXPLAIN tells a role of rows it does not see, layout %s${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  (layout) => {
    let fixture: SecuredStore;
    let client: pg.Client;
    let role: pg.Client;
    let theirNumber: string;
    let theirUpload: string;

    const theirRows = (table: string): string =>
      table.startsWith("file_c")
        ? `upload = '${theirUpload}'`
        : table.startsWith("file")
          ? `namespace = '' AND agent_id = 'other'`
          : `session_no = ${theirNumber}`;

    /** The plan with what was measured, and without the texts that were asked for. */
    async function explain(options: string, sql: string): Promise<string> {
      const { result, said } = await take(role, `EXPLAIN (${options}) ${sql}`);
      expect([sql, result]).toEqual([sql, "0 rows"]);
      return said.replaceAll(/'[^']*'/g, "?");
    }

    async function sampled(): Promise<readonly string[]> {
      const { rows } = await client.query<{ name: string }>(
        `SELECT DISTINCT attname AS name FROM pg_stats WHERE schemaname = $1 AND attname = ANY ($2) ORDER BY 1`,
        [fixture.schema, ["rest", "words", "content", "entry_values", "digest", "turn_owner", "file_id", "upload"]],
      );
      return rows.map(({ name }) => name);
    }

    beforeAll(async () => {
      fixture = await openSecured(url, { layout });
      [client, role] = [new pg.Client({ connectionString: url }), new pg.Client({ connectionString: fixture.roleUrl })];
      await Promise.all([client.connect(), role.connect()]);
      const words = Array.from({ length: 400 }, (_, index) => `word${index} secret ${"xyz"[index % 3]}`);
      const drafts = words.map((content) => ({ type: "message", message: { role: "user", content } }));
      await fixture.owner.append(theirs, drafts);
      for await (const _hit of fixture.owner.search?.search({ text: "secret" }) ?? []) continue;
      const number = await client.query<{ no: string }>(
        `SELECT session_no AS no FROM "${fixture.schema}".sessions WHERE session_id = 'theirs'`,
      );
      theirNumber = number.rows[0]?.no ?? "";
      const file = await client.query<{ upload: string }>(
        `SELECT upload FROM "${fixture.schema}".files WHERE agent_id = 'other'`,
      );
      theirUpload = file.rows[0]?.upload ?? expect.unreachable("no file");
      // With samples, as a server takes them when nobody tells it not to.
      await analyzeSchema(client, fixture.schema);
    });

    afterAll(async () => {
      await Promise.all([client.end(), role.end()]);
      await fixture.dispose();
    });

    it("no comparison with contents is made before the policy, whatever the plan", { tags: ["slow"] }, async () => {
      let compared = 0;
      for (const plan of plans) {
        await role.query(`RESET ALL; ${plan}`);
        for (const [table, columns] of Object.entries(contents))
          for (const column of columns) {
            const isBytes = /coded|source|digest|hash|content/.test(column);
            const [least, greatest] = isBytes ? ["'\\x00'::bytea", "'\\xffffff'::bytea"] : ["' '", "'~~~'"];
            const about = (value: string): string =>
              `SELECT FROM "${fixture.schema}".${table} WHERE ${theirRows(table)} AND ${column} >= ${value}`;
            const options = "ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF";
            const low = await explain(options, about(least));
            expect([table, column, low]).toEqual([table, column, await explain(options, about(greatest))]);
            expect([table, column, low.includes("SubPlan")]).toEqual([table, column, false]);
            compared += 1;
          }
      }
      expect(compared).toBe(84);
    });

    it("no estimate comes from samples of contents", async () => {
      await role.query("RESET ALL");
      expect(await sampled()).toEqual([]);
      const estimate = (from: string): Promise<string> => explain("COSTS", `SELECT FROM "${fixture.schema}".${from}`);
      for (const range of ["records WHERE rest >= '$'", "search_documents WHERE words @@ '$'::tsquery"]) {
        const told = new Set<string>();
        for (const word of ["a", "secret", "word7", "z"]) told.add(await estimate(range.replace("$", word)));
        expect([...told]).toHaveLength(1);
      }
    });

    it("samples from before the policies of this version go when its owner opens the store", async () => {
      const s = `"${fixture.schema}"`;
      await client.query(`ALTER TABLE ${s}.records ALTER COLUMN rest SET STATISTICS -1;
        ALTER TABLE ${s}.search_documents ALTER COLUMN words SET STATISTICS -1`);
      await analyzeSchema(client, fixture.schema);
      expect(await sampled()).toEqual(["rest", "words"]);
      await client.query(`UPDATE ${s}.store_info SET value = 'earlier' WHERE name = 'row_security'`);
      await using store = createPostgresStore({ url, schema: fixture.schema, notify: false });
      expect((await store.list({ agentId: "other" })).sessions.length).toBeGreaterThan(0);
      expect(await sampled()).toEqual([]);
    });
  },
);
