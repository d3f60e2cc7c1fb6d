import { DatabaseError, type Client } from "pg";
import { describe, expect, inject, it } from "vitest";
import { breaksIndex } from "../src/postgres-errors.ts";
import { rowSecurity } from "../src/row-security.ts";
import { schemaSteps } from "../src/schema.ts";
import { splitStatements } from "../src/split-statements.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

const names = ['"plain"', '"append"', `"${"s".repeat(63)}"`];

const layouts = ["plain", "tenant"] as const;

const texts = (layout: (typeof layouts)[number], schema: string): readonly string[] => [
  ...schemaSteps(layout).map(({ sql }) => sql(schema, { partitions: 3 })),
  rowSecurity(schema, layout),
];

describe("the statements of the schema", () => {
  it.each(names)("are its text, and each ends where the next begins: %s", (name) => {
    for (const layout of layouts) {
      const plain = texts(layout, '"plain"').map((text) => splitStatements(text).length);
      for (const [index, text] of texts(layout, name).entries()) {
        const statements = splitStatements(text);
        expect(statements.join("")).toBe(text);
        expect(statements).toHaveLength(plain[index] as number);
      }
    }
  });

  it("end at a semicolon of their own, and nowhere else", () => {
    expect(splitStatements("")).toEqual([]);
    expect(splitStatements(" -- none; here\n")).toEqual([" -- none; here\n"]);
    expect(splitStatements("A 'it''s; one'; B $b$ ; $$ ; $b$;\n")).toEqual(["A 'it''s; one';", " B $b$ ; $$ ; $b$;\n"]);
    expect(splitStatements('A "x;""y"; -- ; B\nB')).toEqual(['A "x;""y";', " -- ; B\nB"]);
    expect(splitStatements("A $1; B 1 - 2; C 'open;")).toEqual(["A $1;", " B 1 - 2;", " C 'open;"]);
  });
});

describe.skipIf(url === "")(
  `a server that takes one statement at a time${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    let prepared = 0;

    /** As a prepared statement, which holds one command: PostgreSQL refuses a second one by 42601. */
    async function prepare(client: Client, statements: readonly string[]): Promise<void> {
      for (const text of statements) await client.query({ name: `statement ${(prepared += 1)}`, text });
    }

    it.each(layouts)("makes the schema of the %s layout, and its row security", { tags: ["slow"] }, async (layout) => {
      const schema = `"${newSchema()}"`;
      await withClient(url, async (client) => {
        await client.query(`CREATE SCHEMA ${schema}`);
        await client.query(`CREATE TABLE ${schema}.store_info (name text PRIMARY KEY, value text NOT NULL)`);
        for (const text of texts(layout, schema)) await prepare(client, splitStatements(text));
        const { rows } = await client.query(
          `SELECT (SELECT count(*)::int FROM pg_policies WHERE schemaname = $1) AS policies,
             (SELECT count(*)::int FROM pg_proc WHERE pronamespace = $1::regnamespace AND proname = 'append_1') AS functions`,
          [schema.slice(1, -1)],
        );
        expect(rows[0].functions).toBe(1);
        expect(rows[0].policies).toBeGreaterThan(5);
        await expect(client.query({ name: "two", text: "SELECT 1; SELECT 2" })).rejects.toMatchObject({
          code: "42601",
        });
      });
    });

    it("names the index that a row breaks in its message, where it leaves the field out", async () => {
      const table = `"${newSchema()}_sessions"`;
      const error: unknown = await withClient(url, async (client) => {
        await client.query(`CREATE TEMP TABLE ${table} (key text CONSTRAINT sessions_address_102008 UNIQUE)`);
        return client.query(`INSERT INTO ${table} VALUES ('a'), ('a')`).catch((failure: unknown) => failure);
      });
      if (!(error instanceof DatabaseError)) throw new Error("the server took it");
      expect([breaksIndex(error, "sessions_address"), breaksIndex(error, "records_")]).toEqual([true, false]);
      const forwarded = new DatabaseError(error.message, error.length, error.name as "error");
      expect(forwarded.constraint).toBeUndefined();
      expect([breaksIndex(forwarded, "sessions_address"), breaksIndex(forwarded, "records_")]).toEqual([true, false]);
    });
  },
);
