import { ThroughlineError, type SessionRef } from "@throughline/core";
import {
  createMovingStore,
  createPostgresStore,
  type PostgresStoreOptions,
  relocateSessions,
} from "@throughline/store-postgres";
import { describe, expect, inject, it } from "vitest";
import { tenantOf } from "../src/layout.ts";
import { schemaSteps } from "../src/schema.ts";
import { tenantTables, vectorTables } from "../src/table-parts.ts";
import { splitStatements } from "../src/split-statements.ts";
import { everyWrite } from "./every-write.ts";
import { makeStandIn } from "./migrate-beside.ts";
import { statementsOfTenant } from "./statements-of-tenant.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:one" };
const draft = { type: "message", message: { role: "user", content: "Hello" } };

const options = (more: Partial<PostgresStoreOptions> = {}): PostgresStoreOptions => ({
  url,
  schema: newSchema(),
  partitions: 2,
  notify: false,
  ...more,
});

async function refusal(opening: PostgresStoreOptions): Promise<ThroughlineError> {
  await using store = createPostgresStore(opening);
  const error: unknown = await store.list().then(
    () => expect.unreachable("was opened"),
    (failure: unknown) => failure,
  );
  if (!ThroughlineError.isInstance(error)) throw error;
  return error;
}

describe("the tenant of an agent", () => {
  // Written down once: another number, and no session of the layout would be found again.
  it("never changes", () => {
    expect(tenantOf({ namespace: "", agentId: "main" })).toBe("-2828660584173377614");
    expect(tenantOf({ namespace: "customer-7", agentId: "main" })).toBe("5437141551271529825");
    expect(tenantOf({ namespace: "Ünï 中", agentId: "Support-Bot" })).toBe("6682319914907443195");
  });

  it("is one for agent ids that differ in case alone, and another in each namespace", () => {
    const of = (namespace: string, agentId: string): string => tenantOf({ namespace, agentId });
    expect(of("a", "Main")).toBe(of("a", "mAIN"));
    expect(of("a", "Main")).not.toBe(of("A", "Main"));
    // The parts are told apart: no namespace runs into an agent.
    expect(of("ab", "c")).not.toBe(of("a", "bc"));
  });
});

/** The statements in the bodies of the layout's functions and views. */
function bodyStatements(): readonly string[] {
  const [sql = ""] = schemaSteps("tenant").map((step) => step.sql('"s"', { partitions: 2 }));
  const bodies = splitStatements(sql).filter((statement) =>
    /CREATE (FUNCTION|OR REPLACE FUNCTION)|DO \$views\$/.test(statement),
  );
  return bodies.flatMap((body) => body.split(/;|\bSELECT FROM\b/));
}

describe("the statements of the tenant layout", () => {
  it("name the tenant wherever they name a session", () => {
    const named = bodyStatements().filter((statement) =>
      /\bsession_no = |\bt\.namespace = |\bbase_nos @> /.test(statement),
    );
    expect(named.length).toBeGreaterThan(20);
    for (const statement of named) expect(statement).toMatch(/tenant/);
  });

  it("change no row by a clock that a server may read once for several nodes", () => {
    const updates = bodyStatements().filter((statement) => /\bUPDATE "s"\.|ON CONFLICT .* DO UPDATE/.test(statement));
    expect(updates.length).toBeGreaterThan(4);
    for (const statement of updates) expect(statement).not.toMatch(/store_now_ms|clock_timestamp|random\(/);
  });
});

describe.skipIf(url === "")(
  `a schema of the tenant layout${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it.each([
      ["made by a store", ["records"]],
      ["that stands in for a distributed one", [...tenantTables, ...vectorTables]],
    ] as const)(
      "%s has the tenant in every key, and in partitions by it: %s",
      { tags: ["slow"] },
      async (_how, parted) => {
        const opening = options({ layout: "tenant", partitions: 3 });
        if (parted.length > 1) await makeStandIn(url, opening.schema ?? "", 3);
        await using store = createPostgresStore(opening);
        await store.list();
        await withClient(url, async (client) => {
          const keys = await client.query<{ table: string; name: string; columns: readonly string[] }>(
            `SELECT t.relname AS table, c.relname AS name,
             ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)) AS columns
           FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_class c ON c.oid = i.indexrelid
           WHERE t.relnamespace = $1::regnamespace AND i.indisunique AND t.relname = ANY ($2)`,
            [opening.schema, [...tenantTables, ...vectorTables]],
          );
          expect(new Set(keys.rows.map(({ table }) => table))).toEqual(new Set([...tenantTables, ...vectorTables]));
          for (const { name, columns } of keys.rows) expect(columns, name).toContain("tenant");
          const spread = await client.query<{ table: string; parts: number; by: string }>(
            `SELECT c.relname AS table, count(h.inhrelid)::int AS parts, pg_get_partkeydef(c.oid) AS by
           FROM pg_class c JOIN pg_inherits h ON h.inhparent = c.oid
           WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'p' GROUP BY c.oid, 1`,
            [opening.schema],
          );
          expect(spread.rows.toSorted((a, b) => (a.table < b.table ? -1 : 1))).toEqual(
            parted.toSorted().map((table) => ({ table, parts: 3, by: "HASH (tenant)" })),
          );
        });
      },
    );

    it(
      "keeps what the sessions of several agents say, and finds it as the layout it has without being told",
      { tags: ["slow"] },
      async () => {
        const opening = options();
        const agents = ["main", "Other", "third"];
        {
          await using store = createPostgresStore({ ...opening, layout: "tenant" });
          for (const agentId of agents) {
            await store.save({ ...ref, agentId }, { sessionId: "one" }, { ifRevision: null });
            await store.append({ ...ref, agentId }, [draft]);
          }
        }
        await using again = createPostgresStore({ ...opening, migrate: false });
        expect((await again.list()).sessions.map((session) => session.ref.agentId).toSorted()).toEqual(
          agents.toSorted(),
        );
        for (const agentId of agents) expect((await again.readWindow({ ...ref, agentId })).records).toHaveLength(1);
        await expect(again.load({ ...ref, agentId: "OTHER" })).resolves.toBeNull();
      },
    );

    it(
      "is refused where another layout is asked for, and the other way round, with a remedy; nothing is changed",
      { tags: ["slow"] },
      async () => {
        for (const [made, asked] of [
          ["tenant", "plain"],
          ["plain", "tenant"],
        ] as const) {
          const opening = options({ layout: made });
          await using store = createPostgresStore(opening);
          await store.save(ref, { sessionId: "one" }, { ifRevision: null });
          for (const migrate of [true, false]) {
            const error = await refusal({ ...opening, layout: asked, migrate });
            expect([error.code, error.outcome]).toEqual(["STORE_UNSUPPORTED", "not-applied"]);
            expect(error.message).toContain(`the ${made} layout`);
            expect(error.remedy).toContain(`layout: "${made}"`);
          }
          await expect(store.load(ref)).resolves.toMatchObject({ sessionId: "one" });
        }
      },
    );

    it("knows each tenant by the number that the store gives it, whatever the names", async () => {
      const opening = options({ layout: "tenant", rowSecurity: true });
      await using store = createPostgresStore(opening);
      await store.list();
      const agents = [
        { namespace: "", agentId: "main" },
        { namespace: "Ünï 中 \u{1f600}'\\", agentId: "Support-Bot" },
        { namespace: "a", agentId: "MAIN" },
        { namespace: "\\x00", agentId: "i" },
      ];
      for (const { namespace, agentId } of agents) {
        const { rows } = await withClient(url, (client) =>
          client.query(
            `SELECT "${opening.schema}".tenant_of_1($1, $2)::text AS tenant, "${opening.schema}".role_of_1($1, $2) AS role`,
            [namespace, agentId],
          ),
        );
        const tenant = tenantOf({ namespace, agentId });
        expect(rows).toEqual([{ tenant, role: `tl_${tenant}` }]);
      }
    });

    it("is what the URL says, and a layout that there is not is refused without its password", async () => {
      const schema = newSchema();
      const named = (layout: string): string => {
        const place = new URL(url);
        place.searchParams.set("schema", schema);
        place.searchParams.set("layout", layout);
        return place.href;
      };
      {
        await using store = createPostgresStore({ url: named("tenant"), notify: false });
        await store.list();
      }
      expect((await refusal({ url: named("plain"), notify: false })).message).toContain("the tenant layout");
      const odd = named("tenants");
      const error = ((): unknown => {
        try {
          return createPostgresStore({ url: odd });
        } catch (failure) {
          return failure;
        }
      })();
      if (!ThroughlineError.isInstance(error)) throw new Error("was taken");
      expect(error.code).toBe("STORE_URL_INVALID");
      expect(JSON.stringify(error)).not.toContain(new URL(url).password === "" ? odd : new URL(url).password);
    });

    it("is told the agent of every statement that binds its tenant alone", { tags: ["slow"] }, async () => {
      const from = createPostgresStore(options({ layout: "tenant" }));
      const to = createPostgresStore(options({ layout: "tenant" }));
      await using both = createMovingStore(to, from);
      for (const store of [from, to]) await store.list();
      const asked = statementsOfTenant([from, to], ref);
      await everyWrite(from, ref);
      await from.save(
        ref,
        { sessionId: "read", importedFrom: { format: "pi", sourceId: "one" } },
        { ifRevision: null },
      );
      await from.append(ref, [draft]);
      const fork = { ...ref, key: "agent:main:fork" };
      await from.fork.fork(ref, fork, { sessionId: "fork" });
      const { namespace, agentId } = ref;
      await from.list({ agentId, importedFrom: { format: "pi", sourceId: "one" } });
      for (const words of [{ text: "Hello" }, { anyOf: ["Hello", "nothing"] }])
        for await (const _hit of from.search?.search({ agentId, ...words }) ?? []);
      for await (const _page of from.maintenance.purges?.({ namespace, agentId }) ?? []);
      for await (const _finding of from.maintenance.verify({ full: true }));
      await from.fork.sharers?.(ref, [1]);
      for await (const { outcome } of relocateSessions(from, to)) expect(outcome).toBe("moved");
      for (const each of [ref, fork]) await both.remove(each, { purge: true });
      expect(asked.filter(({ isStated }) => !isStated).map(({ text }) => text)).toEqual([]);
      expect(asked.length).toBeGreaterThan(150);
    });

    it("is made once by ten that begin together", { tags: ["slow"] }, async () => {
      const opening = options({ layout: "tenant" });
      const stores = Array.from({ length: 10 }, () => createPostgresStore(opening));
      await Promise.all(
        stores.map((store, index) =>
          store.save({ ...ref, key: `agent:main:s${index}` }, { sessionId: `s${index}` }, { ifRevision: null }),
        ),
      );
      expect((await stores[0]?.list())?.sessions).toHaveLength(10);
      await Promise.all(stores.map((store) => store.close()));
    });
  },
);
