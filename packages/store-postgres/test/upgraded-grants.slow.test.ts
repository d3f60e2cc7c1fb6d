import { hasErrorCode, type SessionRef, type ThroughlineError } from "@throughline/core";
import { createPostgresStore } from "@throughline/store-postgres";
import { afterEach, describe, expect, inject, it } from "vitest";
import { migrateSchema } from "../src/migrate-schema.ts";
import { schemaSteps } from "../src/schema.ts";
import { migrationPlace } from "./migrate-beside.ts";
import { readmeGrants } from "./readme-grants.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:one" };
const draft = { type: "message", id: "r1", message: { role: "user", content: "zanzibar" } };
const model = "test/model@4";

const roles: string[] = [];
afterEach(async () => {
  for (const role of roles.splice(0))
    await withClient(url, (client) => client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
});

/** Makes a schema of the version before vectors, and a role with the grants of the README as they were then. */
async function olderSchema(): Promise<{ readonly schema: string; readonly role: string; readonly roleUrl: string }> {
  const schema = newSchema();
  const where = migrationPlace(url, schema);
  await migrateSchema(where, { partitions: 2 }, (layout) => schemaSteps(layout).slice(0, 1));
  await where.end();
  const role = `role_${schema}`;
  await withClient(url, (client) =>
    client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'; ${readmeGrants(schema, role)}`),
  );
  roles.push(role);
  const own = new URL(url);
  own.username = role;
  own.password = "secret";
  return { schema, role, roleUrl: own.href };
}

async function errorOf(work: Promise<unknown>): Promise<Partial<ThroughlineError>> {
  return work.then(
    () => ({}),
    (error: unknown) => error as ThroughlineError,
  );
}

describe.skipIf(url === "")("a role that may not create tables, after a program with a newer schema came", () => {
  it("reads that the owner has to upgrade the schema, whether it asks for the upgrade or not", async () => {
    const { schema, roleUrl } = await olderSchema();
    for (const [migrate, code] of [
      [true, "STORE_READ_ONLY"],
      [false, "STORE_NOT_FOUND"],
    ] as const) {
      await using store = createPostgresStore({ url: roleUrl, schema, migrate });
      const error = await errorOf(store.list());
      expect(error).toMatchObject({ code, outcome: "not-applied" });
      expect(error.message).toContain(`The schema ${schema} is at version 1 and has to be upgraded to 2`);
      expect(error.remedy).toContain("as the role that owns the schema");
    }
    const tables = await withClient(url, (client) =>
      client.query("SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'vectors'", [schema]),
    );
    expect(tables.rowCount).toBe(0);
  });

  it("works on after the upgrade, and erases only once it has the new grants", async () => {
    const { schema, role, roleUrl } = await olderSchema();
    {
      await using owner = createPostgresStore({ url, schema });
      await owner.list();
    }
    await using store = createPostgresStore({ url: roleUrl, schema });
    await store.save(ref, { sessionId: "one" }, { ifRevision: null });
    await store.append(ref, [draft]);
    const redact = (): Promise<unknown> => store.redact(ref, ["r1"], { reason: "test" });
    for (const work of [redact, () => store.remove(ref, { purge: true })]) {
      const error = await errorOf(work());
      expect(hasErrorCode(error, "STORE_READ_ONLY")).toBe(true);
      expect([error.outcome, error.remedy]).toEqual(["not-applied", expect.stringContaining("README")]);
    }
    expect((await errorOf(store.vectors?.pending(ref, { model }) ?? Promise.resolve())).code).toBe("STORE_READ_ONLY");
    expect((await store.load(ref))?.messageCount).toBe(1);
    await withClient(url, (client) => client.query(readmeGrants(schema, role)));
    expect((await store.vectors?.pending(ref, { model }))?.records).toBe(1);
    await redact();
    await store.remove(ref, { purge: true });
    expect(await store.load(ref)).toBeNull();
  });
});
