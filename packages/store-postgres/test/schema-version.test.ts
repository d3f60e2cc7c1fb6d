import { createPostgresStore, type PostgresStoreOptions } from "@throughline/store-postgres";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { schemaSteps } from "../src/schema.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const newest = schemaSteps("plain").at(-1)?.version ?? 0;

/** Changes to a schema of this version, whose quoted name is `s`. */
const others: readonly (readonly [name: string, code: string, sql: (s: string) => string])[] = [
  [
    "of a newer version",
    "STORE_VERSION_UNSUPPORTED",
    (s) => `CREATE TABLE ${s}.later (x int);
      UPDATE ${s}.store_info SET value = '${newest + 1}' WHERE name IN ('version', 'oldest_program');
      INSERT INTO ${s}.store_info VALUES ('checksum_${newest + 1}', 'later')`,
  ],
  [
    "whose step was applied in other words",
    "STORE_VERSION_UNSUPPORTED",
    (s) => `UPDATE ${s}.store_info SET value = 'x' || value WHERE name = 'checksum_${newest}'`,
  ],
  [
    "whose step left no checksum",
    "STORE_VERSION_UNSUPPORTED",
    (s) => `DELETE FROM ${s}.store_info WHERE name = 'checksum_${newest}'`,
  ],
  [
    "whose version is no number",
    "STORE_FOREIGN",
    (s) => `UPDATE ${s}.store_info SET value = 'seven' WHERE name = 'version'`,
  ],
  [
    "whose layout is unknown",
    "STORE_FOREIGN",
    (s) => `UPDATE ${s}.store_info SET value = 'round' WHERE name = 'layout'`,
  ],
];

/** What another program may have in a schema, and what a store without leave to migrate says there. */
const foreigners: readonly (readonly [name: string, unmigrated: string, sql: (s: string) => string])[] = [
  [
    "with a store_info of other columns",
    "STORE_FOREIGN",
    (s) => `CREATE TABLE ${s}.store_info (id int); INSERT INTO ${s}.store_info VALUES (1)`,
  ],
  [
    "with a store_info of another program",
    "STORE_FOREIGN",
    (s) => `CREATE TABLE ${s}.store_info (name text, value text); INSERT INTO ${s}.store_info VALUES ('shop', 'open')`,
  ],
  [
    "with a view store_info",
    "STORE_FOREIGN",
    (s) => `CREATE VIEW ${s}.store_info AS SELECT 'version'::text AS name, '1'::text AS value`,
  ],
  [
    "with a table sessions of another program",
    "STORE_NOT_FOUND",
    (s) => `CREATE TABLE ${s}.sessions (id int); INSERT INTO ${s}.sessions VALUES (1)`,
  ],
  [
    "with a function of another program",
    "STORE_NOT_FOUND",
    (s) => `CREATE FUNCTION ${s}.store_now_ms() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'`,
  ],
];

/** Every object of a schema with the file that holds its rows, and every row. */
async function dump(schema: string): Promise<readonly string[]> {
  return withClient(url, async (client) => {
    const objects = await client.query(
      `SELECT relname AS name, oid::text, relkind::text AS kind, relfilenode::text AS file, relrowsecurity::text AS secured
         FROM pg_class WHERE relnamespace = $1::regnamespace
       UNION ALL SELECT proname, oid::text, 'function', '', md5(prosrc) FROM pg_proc WHERE pronamespace = $1::regnamespace
       ORDER BY 1, 2`,
      [`"${schema}"`],
    );
    const lines = objects.rows.map((row) => JSON.stringify(row));
    for (const { name, kind } of objects.rows as { readonly name: string; readonly kind: string }[])
      if (kind === "r") {
        const { rows } = await client.query(`SELECT t::text AS row FROM "${schema}"."${name}" t ORDER BY 1`);
        lines.push(...rows.map(({ row }) => `${name} ${row}`));
      }
    return lines;
  });
}

describe.skipIf(url === "")(
  `a schema of another version${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    let schema: string;

    beforeAll(async () => {
      schema = newSchema();
      await using store = createPostgresStore({ url, schema, partitions: 1, notify: false });
      const ref = { namespace: "", agentId: "main", key: "agent:main:a" };
      await store.save(ref, { sessionId: "a" }, { ifRevision: null });
      await withClient(url, (client) =>
        client.query(`CREATE TABLE "${schema}".kept AS SELECT * FROM "${schema}".store_info`),
      );
    });

    async function expectRefused(name: string, code: string, options: Partial<PostgresStoreOptions>): Promise<void> {
      const before = await dump(name);
      expect(before.length).toBeGreaterThan(0);
      await using store = createPostgresStore({ url, schema: name, partitions: 1, notify: false, ...options });
      await expect(store.list()).rejects.toMatchObject({ code, outcome: "not-applied" });
      expect(await dump(name)).toEqual(before);
    }

    it.each(others)("%s is refused with %s, and unchanged", async (_name, code, sql) => {
      await withClient(url, (client) => client.query(sql(`"${schema}"`)));
      for (const options of [{}, { rowSecurity: true }, { migrate: false }]) await expectRefused(schema, code, options);
      await withClient(url, (client) =>
        client.query(`DELETE FROM "${schema}".store_info; DROP TABLE IF EXISTS "${schema}".later;
          INSERT INTO "${schema}".store_info SELECT * FROM "${schema}".kept`),
      );
      await using store = createPostgresStore({ url, schema, notify: false });
      expect((await store.list()).sessions).toHaveLength(1);
    });

    it.each(foreigners)("%s is refused, and unchanged", async (_name, unmigrated, sql) => {
      const name = newSchema();
      await withClient(url, (client) => client.query(`CREATE SCHEMA "${name}"; ${sql(`"${name}"`)}`));
      await expectRefused(name, "STORE_FOREIGN", {});
      await expectRefused(name, unmigrated, { migrate: false });
    });
  },
);
