import { createPostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { functionCalls } from "./function-calls.ts";
import { foreign, openSecured, own, take, theirs, type Outcome, type SecuredStore } from "./secured-store.ts";
import { analyzeSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

interface Relation {
  readonly name: string;
  readonly kind: string;
  readonly oid: string;
  readonly is_secured: boolean;
  readonly is_partition: boolean;
  readonly toast: string | null;
  /** Columns that a statement may write. */
  readonly columns: readonly string[];
}

/** Rights that the grants do not give: each ends with 42501, whatever is in the table. */
const denied: Readonly<Record<string, string>> = {
  TRUNCATE: "TRUNCATE $t",
  TRIGGER: "CREATE TRIGGER x BEFORE INSERT ON $t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
  RULE: "CREATE RULE x AS ON SELECT TO $t DO INSTEAD SELECT 1",
  POLICY: "CREATE POLICY x ON $t USING (true)",
  "ALTER, row security off": "ALTER TABLE $t DISABLE ROW LEVEL SECURITY",
  "ALTER, a column": "ALTER TABLE $t ADD COLUMN x int",
  OWNER: "ALTER TABLE $t OWNER TO current_user",
  INDEX: "CREATE INDEX x ON $t ((1))",
  STATISTICS: "CREATE STATISTICS pg_temp.x ON ctid, tableoid FROM $t",
  INHERIT: "CREATE TEMP TABLE x () INHERITS ($t)",
  COMMENT: "COMMENT ON TABLE $t IS 'x'",
  DROP: "DROP TABLE $t CASCADE",
};

describe.skipIf(url === "").each(["plain", "tenant"] as const)(
  `every object of a secured schema, as the role of another agent, layout %s${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  (layout) => {
    let fixture: SecuredStore;
    let relations: readonly Relation[];
    let before: readonly string[];
    let client: pg.Client;
    let ownNumbers: string;
    let ownUploads: string;
    let theirUpload: string;
    let tenant: string;
    let theirTenant: string;
    let theirNumber: string;
    const name = (relation: { readonly name: string }): string => `"${fixture.schema}"."${relation.name}"`;
    const tables = (): readonly Relation[] => relations.filter(({ kind }) => kind === "r" || kind === "p");
    const views = (): readonly Relation[] => relations.filter(({ kind }) => kind === "v");

    /** A sum of all rows that are not the role's, table by table, as the owner sees them. */
    async function foreignRows(): Promise<readonly string[]> {
      const sums = tables().flatMap((relation) => {
        const text = relation.name === "search_state" ? "only_row::text" : "t::text";
        return relation.kind === "p"
          ? []
          : [
              `SELECT '${relation.name} ' || count(*) || coalesce(md5(string_agg(${text}, ' ' ORDER BY ${text})), '') AS sum
               FROM ${name(relation)} t WHERE NOT (${ownRows(relation)})`,
            ];
      });
      return (await client.query<{ sum: string }>(sums.join(" UNION ALL "))).rows.map(({ sum }) => sum);
    }

    /** Which rows are the role's. */
    function ownRows({ columns }: Relation): string {
      if (columns.includes("tenant")) return `tenant = ${tenant}`;
      if (columns.includes("session_no")) return `session_no IN (${ownNumbers})`;
      if (columns.includes("role_name")) return `role_name = '${fixture.role}'`;
      if (columns.includes("upload")) return `upload IN (${ownUploads})`;
      return columns.includes("agent_id") ? "agent_id = 'main'" : "false";
    }

    /** A statement of the role, what it came to, and whether anything of others was seen or changed; then all is undone. */
    async function attempt(sql: string, setup = ""): Promise<Outcome> {
      await client.query(`BEGIN; SET LOCAL ROLE ${fixture.role}; SET LOCAL lock_timeout = '5s'; ${setup}; SAVEPOINT s`);
      const outcome = await take(client, sql);
      if (/^[0-9A-Z]{5}$/.test(outcome.result)) await client.query("ROLLBACK TO s");
      await client.query("RESET ROLE");
      const now = await foreignRows().catch(String);
      await client.query("ROLLBACK");
      expect(now, sql).toEqual(before);
      expect(outcome.said, sql).not.toMatch(foreign);
      return outcome;
    }

    beforeAll(async () => {
      fixture = await openSecured(url, { layout });
      for (const [ref, text] of [
        [own, "plain"],
        [theirs, "Zanzibar"],
      ] as const)
        await fixture.owner.append(ref, [
          { type: "compaction", summary: text, firstKeptEntryId: "x", tokensBefore: 1 },
          {
            type: "checkpoint",
            checkpoint: {
              summary: text,
              tokensAtCheckpoint: 1,
              messageCountAtCheckpoint: 1,
              topics: [],
              keyDecisions: [],
              openQuestions: [],
            },
          },
        ]);
      client = new pg.Client({ connectionString: url });
      await client.connect();
      await analyzeSchema(client, fixture.schema);
      relations = (
        await client.query<Relation>(
          `SELECT c.relname AS name, c.relkind AS kind, c.oid::text, c.relrowsecurity AS is_secured,
               c.relispartition AS is_partition, nullif(c.reltoastrelid, 0)::regclass::text AS toast,
               ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
                 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum) AS columns
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 ORDER BY 1`,
          [fixture.schema],
        )
      ).rows;
      const numbers = await client.query<{ own: string[]; their: string; tenants: (string | null)[] }>(
        `SELECT array_agg(session_no) || array_agg(base_nos[1]) FILTER (WHERE base_nos IS NOT NULL) AS own,
             (SELECT session_no FROM "${fixture.schema}".sessions WHERE session_id = 'theirs') AS their,
             ARRAY(SELECT to_jsonb(t) ->> 'tenant' FROM "${fixture.schema}".sessions t
               WHERE session_id IN ('mine', 'theirs') ORDER BY session_id) AS tenants
           FROM "${fixture.schema}".sessions WHERE agent_id = 'main'`,
      );
      ownNumbers = (numbers.rows[0]?.own ?? []).join(", ");
      theirNumber = numbers.rows[0]?.their ?? "";
      const uploads = await client.query<{ upload: string; is_own: boolean }>(
        `SELECT upload, agent_id = 'main' AS is_own FROM "${fixture.schema}".files`,
      );
      ownUploads = uploads.rows.flatMap((row) => (row.is_own ? [`'${row.upload}'`] : [])).join(", ");
      theirUpload = uploads.rows.find((row) => !row.is_own)?.upload ?? expect.unreachable("no file");
      [tenant = "", theirTenant = ""] = (numbers.rows[0]?.tenants ?? []).map(String);
      // A second note changes nothing.
      await client.query(`SELECT "${fixture.schema}".note_erased_words_1()`);
      before = await foreignRows();
      expect(before.filter((sum) => / [1-9]/.test(sum)).length).toBeGreaterThan(8);
    });

    afterAll(async () => {
      await client.end();
      await fixture.dispose();
    });

    it("there are tables, partitions, indexes, sequences and views, all tables have row security, and the note of erased words alone has its owner's rights", async () => {
      expect([...new Set(relations.map(({ kind }) => kind))].toSorted()).toEqual(["I", "S", "i", "p", "r", "v"]);
      expect(tables().filter(({ is_secured: isSecured }) => !isSecured)).toEqual([]);
      expect(tables().filter(({ is_partition: isPartition }) => isPartition)).toHaveLength(2);
      const others = await withClient(url, (client) =>
        client.query(
          `SELECT (SELECT array_agg(p.proname::text || pg_get_function_arguments(p.oid)) FROM pg_proc p
               WHERE p.pronamespace = n.oid AND p.prosecdef) AS definers,
             (SELECT count(*) FROM pg_proc p WHERE p.pronamespace = n.oid AND p.prokind <> 'f')::int AS procedures,
             (SELECT count(*) FROM pg_largeobject_metadata)::int AS large_objects,
             (SELECT count(*) FROM pg_extension WHERE extname <> 'plpgsql')::int AS extensions,
             (SELECT count(*) FROM pg_type t WHERE t.typnamespace = n.oid AND t.typtype NOT IN ('c', 'b'))::int AS types
           FROM pg_namespace n WHERE n.nspname = $1`,
          [fixture.schema],
        ),
      );
      expect(others.rows[0]).toEqual({
        // It takes no argument, and writes the numbers of the files of an index.
        definers: ["note_erased_words_1"],
        procedures: 0,
        large_objects: 0,
        extensions: 0,
        types: 0,
      });
    });

    it(
      "reading: what is not its own comes in no row, no copy, no plan, no notice and no error",
      { tags: ["slow"] },
      async () => {
        const leak = `CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001
          AS $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$;
        CREATE OPERATOR pg_temp.<<< (RIGHTARG = text, FUNCTION = pg_temp.leak)`;
        let seen = 0;
        for (const relation of [...tables(), ...views()]) {
          const t = name(relation);
          const outcomes = [
            await attempt(`SELECT t::text FROM ${t} t`),
            await attempt(`SELECT t::text FROM ONLY ${t} t FOR KEY SHARE`),
            await attempt(`SELECT count(*) FROM ${t} t WHERE pg_temp.leak(t::text)`, leak),
            await attempt(`SELECT count(*) FROM ${t} t WHERE OPERATOR(pg_temp.<<<) t::text`, leak),
            await attempt(`EXPLAIN (ANALYZE, VERBOSE) SELECT FROM ${t} t WHERE pg_temp.leak(t::text)`, leak),
            await attempt(`SELECT FROM ${t} t WHERE t::text::int > 0`),
            await attempt(`COPY (SELECT * FROM ${t}) TO STDOUT`),
            ...(relation.kind === "r" ? [await attempt(`COPY ${t} TO STDOUT`)] : []),
            await attempt(`SELECT * FROM x`, `CREATE TEMP VIEW x AS SELECT t::text FROM ${t} t`),
            await attempt(`TABLE pg_temp.y`, `CREATE TEMP TABLE y AS SELECT t::text FROM ${t} t`),
          ];
          seen += outcomes.length;
          if (relation.kind === "v")
            expect(outcomes[0]).toMatchObject({ result: "1 rows", said: expect.stringContaining("plain") });
          // A partition shows no row, not even the role's own.
          if (relation.is_partition) expect([outcomes[0]?.result, outcomes[6]?.said.trim()]).toEqual(["0 rows", "[]"]);
          if (relation.toast !== null) expect((await attempt(`SELECT * FROM ${relation.toast}`)).result).toBe("42501");
        }
        expect(seen).toBeGreaterThan(100);
        const stats = await attempt(`SELECT * FROM pg_stats WHERE schemaname = '${fixture.schema}'`);
        const busy = await attempt("SELECT query FROM pg_stat_activity WHERE usename <> current_user");
        expect([stats.result, busy.result].every((result) => result.endsWith(" rows"))).toBe(true);
      },
    );

    it(
      "inserting what is another's is refused in the same words whether it is there or not",
      { tags: ["slow"] },
      async () => {
        for (const relation of tables()) {
          const t = name(relation);
          const rows = await withClient(url, (client) =>
            client.query<Record<string, string>>(
              `SELECT ${relation.columns.map((column) => `quote_nullable(${column}::text) AS ${column}`).join(", ")}
             FROM ${t} WHERE NOT (${ownRows(relation)}) LIMIT 1`,
            ),
          );
          const [row] = rows.rows;
          const outcomes = new Set<string>();
          // The same row, and one whose numbers and names nobody has. Arrays stay: no policy finds a row by one.
          const known = row ?? Object.fromEntries(relation.columns.map((column) => [column, "NULL"]));
          const nobody = Object.fromEntries(
            Object.entries(known).map(([column, value]) => [
              column,
              ["session_no", "tenant"].includes(column)
                ? "'987654321'"
                : /^'(?!\{).*(their|other).*'$/s.test(value)
                  ? "'nobody'"
                  : value,
            ]),
          );
          for (const values of [known, nobody])
            for (const conflict of ["", " ON CONFLICT DO NOTHING"]) {
              const outcome = await attempt(
                `INSERT INTO ${t} (${relation.columns.join(", ")}) VALUES (${relation.columns.map((column) => values[column]).join(", ")})${conflict}`,
                `SELECT nextval('"${fixture.schema}".session_numbers')`,
              );
              outcomes.add(`${outcome.result} ${outcome.said}`);
            }
          expect([relation.name, ...outcomes].map((each) => each.slice(0, 5)).slice(1)).toEqual(["42501"]);
          const copied = await attempt(`COPY ${t} FROM STDIN`);
          expect(["42501", "0A000"]).toContain(copied.result);
        }
      },
    );

    it(
      "changing and deleting reach the role's own rows, and none through a partition",
      { tags: ["slow"] },
      async () => {
        for (const relation of tables()) {
          const t = name(relation);
          for (const column of relation.columns) await attempt(`UPDATE ${t} SET ${column} = ${column}`);
          const deleted = await attempt(`DELETE FROM ${t}`);
          const taken = await attempt(`UPDATE ${t} SET ${relation.columns[0]} = ${relation.columns[0]} RETURNING *`);
          if (relation.is_partition || ["store_info", "agent_roles"].includes(relation.name))
            expect(["0 rows", "42501"]).toEqual(expect.arrayContaining([deleted.result, taken.result]));
          if (relation.name === "search_state") expect(deleted.result).toBe("0 rows");
          if (relation.columns.includes("session_no")) {
            const [column, there] = layout === "plain" ? ["session_no", theirNumber] : ["tenant", theirTenant];
            const moved = await attempt(`UPDATE ${t} SET ${column} = ${there}`);
            const nowhere = await attempt(`UPDATE ${t} SET ${column} = 987654321`);
            expect(["0 rows", "42501"]).toContain(moved.result);
            expect(moved).toEqual(nowhere);
          }
          if (relation.columns.includes("agent_id"))
            expect(["0 rows", "42501"]).toContain((await attempt(`UPDATE ${t} SET agent_id = 'other'`)).result);
          if (relation.columns.includes("role_name"))
            expect(["0 rows", "42501"]).toContain((await attempt(`UPDATE ${t} SET role_name = 'somebody'`)).result);
          if (relation.columns.includes("base_nos"))
            for (const number of [theirNumber, "987654321"])
              expect((await attempt(`UPDATE ${t} SET base_nos = ARRAY[${number}]`)).result).toBe("42501");
        }
      },
    );

    it("everything that the grants do not name is refused, on every table", { tags: ["slow"] }, async () => {
      let tried = 0;
      for (const relation of tables()) {
        for (const [verb, sql] of Object.entries(denied)) {
          const { result } = await attempt(sql.replaceAll("$t", name(relation)));
          // A partition, or a table with partitions, cannot be inherited from at all.
          expect(["42501", verb === "INHERIT" ? "42809" : "", verb === "RULE" ? "0A000" : ""], verb).toContain(result);
          tried += 1;
        }
        const keys = await withClient(url, (client) =>
          client.query<{ keys: string; types: string[]; names: string[] }>(
            `SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY k.n) AS keys,
               array_agg(format_type(a.atttypid, a.atttypmod) ORDER BY k.n) AS types
             FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (attnum, n)
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
             WHERE i.indrelid = $1::oid AND i.indisprimary`,
            [relation.oid],
          ),
        );
        const { keys: columns, types = [] } = keys.rows[0] ?? {};
        const given = types.map((type, index) => `c${index} ${type}`).join(", ");
        const names = types.map((_type, index) => `c${index}`).join(", ");
        const referring = await attempt(
          `CREATE TEMP TABLE x (${given}, FOREIGN KEY (${names}) REFERENCES ${name(relation)} (${columns}))`,
        );
        // A temporary table may refer to no other kind; PostgreSQL says that first.
        expect(["42501", "42P16"]).toContain(referring.result);
      }
      expect(tried).toBeGreaterThan(130);
      for (const { name: sequence } of relations.filter(({ kind }) => kind === "S")) {
        const s = `"${fixture.schema}"."${sequence}"`;
        expect((await attempt(`SELECT setval('${s}', 1)`)).result).toBe("42501");
        expect((await attempt(`SELECT * FROM ${s}`)).result).toBe("42501");
        expect((await attempt(`ALTER SEQUENCE ${s} RESTART`)).result).toBe("42501");
        expect((await attempt(`SELECT nextval('${s}')`)).result).toBe("1 rows");
      }
      for (const what of [
        "TABLE x (a int)",
        "FUNCTION x() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "TYPE x AS (a int)",
      ])
        expect((await attempt(`CREATE ${what.replace("x", `"${fixture.schema}".x`)}`)).result).toBe("42501");
    });

    it("every function, with what belongs to another agent, answers as if it were not there", async () => {
      const calls = functionCalls({ schema: fixture.schema, layout, theirNumber, theirTenant, theirUpload });
      const names = await withClient(url, (client) =>
        client.query<{ name: string }>(
          "SELECT p.proname AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = $1",
          [fixture.schema],
        ),
      );
      expect(names.rows.map((row) => row.name).toSorted()).toEqual(Object.keys(calls).toSorted());
      for (const [sql, result] of Object.values(calls).flat()) {
        const outcome = await attempt(sql);
        expect([sql, outcome.result]).toEqual([sql, result]);
        if (sql.includes("same")) expect(outcome.said).toBe('[{"same":true}]');
        if (sql.includes("append_1")) expect(outcome.said).toBe('[{"append_1":null}]');
      }
    });

    it("a role that logs in becomes nobody else, turns nothing off and leaves nothing behind", async () => {
      const outcomes = await withClient(fixture.roleUrl, async (client) => {
        const found: string[] = [];
        for (const sql of [
          "SET ROLE postgres",
          "SET SESSION AUTHORIZATION postgres",
          `SET row_security = off; SELECT * FROM "${fixture.schema}".records`,
          `SET row_security = off; SELECT * FROM "${fixture.schema}".records_0`,
          "SET session_replication_role = replica",
          ...(layout === "plain" ? [] : [`SET ROLE "tl_${theirTenant}"`, `GRANT "tl_${theirTenant}" TO CURRENT_USER`]),
          `CREATE EVENT TRIGGER x ON ddl_command_start EXECUTE FUNCTION suppress_redundant_updates_trigger()`,
          `ALTER ROLE CURRENT_USER BYPASSRLS`,
          `ALTER DEFAULT PRIVILEGES FOR ROLE postgres GRANT ALL ON TABLES TO PUBLIC`,
        ])
          found.push((await take(client, sql)).result);
        return found;
      });
      expect(outcomes).toEqual(Array.from({ length: layout === "plain" ? 8 : 10 }, () => "42501"));
      // A lock that migrations use keeps nobody from a store whose schema is up to date.
      await withClient(fixture.roleUrl, async (client) => {
        await client.query(`SELECT pg_advisory_lock(${0x746c6e65})`);
        await using store = createPostgresStore({ url, schema: fixture.schema, rowSecurity: true, timeoutMs: 2000 });
        expect((await store.list({ agentId: "other" })).sessions.length).toBeGreaterThan(0);
      });
    });
  },
);
