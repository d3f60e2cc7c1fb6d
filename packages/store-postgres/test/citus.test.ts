import process from "node:process";
import type { SessionRef } from "@throughline/core";
import { describeStoreConformance } from "@throughline/store-conformance";
import { createPostgresStore, type PostgresStore, relocateSessions } from "@throughline/store-postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { kitRunner } from "../../../tools/kit-runner.ts";
import { tenantOf } from "../src/layout.ts";
import { tenantTables, vectorTables } from "../src/table-parts.ts";
import { hashOf } from "../src/shard-nodes.ts";
import { everyWrite } from "./every-write.ts";
import { freeze, FrozenWork, said } from "./frozen-worker.ts";
import { listenToShards } from "./shards-asked.ts";
import { readmeGrants } from "./readme-grants.ts";
import { endPools, newSchema, openUnderTest, withClient } from "./store-under-test.ts";

const spreadTables = [...tenantTables, ...vectorTables];

/** The coordinator of a cluster: a database with the extension, two workers or more, and `wal_level = logical`. */
const url = process.env["THROUGHLINE_CITUS_URL"] ?? "";
const writers = 8;
const appendsEach = 200;

const refOf = (writer: number): SessionRef => ({
  namespace: "",
  agentId: `agent-${writer}`,
  key: `agent:agent-${writer}:main`,
});

/** Appends with a key each, and repeats those whose outcome is not known; gives the ids that were acknowledged. */
async function writeAll(store: PostgresStore, writer: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let turn = 0; turn < appendsEach; turn++) {
    const drafts = [1, 2].map((part) => ({
      type: "message",
      id: `w${writer}-${turn}-${part}`,
      message: { role: "user", content: "x".repeat(700) },
    }));
    const { records } = await store.append(refOf(writer), drafts, { idempotencyKey: `w${writer}-${turn}` });
    ids.push(...records.map(({ id }) => id));
  }
  return ids;
}

/** Returns agents with rows on one worker, agents with rows on others, and the URL of the one. */
async function tenantsByWorker(schema: string, onOne: number, onOthers: number) {
  const found = await withClient(url, async (client) => {
    const agents = Array.from({ length: 200 }, (_, index) => `placed-${index}`);
    const { rows } = await client.query<{ agent: string; port: number; host: string }>(
      `SELECT a.agent, s.nodeport AS port, s.nodename AS host FROM unnest($1::text[], $2::bigint[]) AS a (agent, tenant)
       JOIN citus_shards s ON s.table_name = '"${schema}".records'::regclass
         AND s.shardid = get_shard_id_for_distribution_column('"${schema}".records', a.tenant)`,
      [agents, agents.map((agentId) => tenantOf({ namespace: "", agentId }))],
    );
    return rows;
  });
  const [first] = found;
  const refs = (isOne: boolean): readonly SessionRef[] =>
    found
      .filter(({ port }) => (port === first?.port) === isOne)
      .map(({ agent }) => ({ namespace: "", agentId: agent, key: `agent:${agent}:main` }));
  const frozenUrl = Object.assign(new URL(url), { hostname: first?.host, port: String(first?.port) }).href;
  return { frozen: refs(true).slice(0, onOne), served: refs(false).slice(0, onOthers), frozenUrl };
}

afterAll(endPools);

if (url === "") {
  describe("store-postgres on Citus", () => {
    it.skip("needs a cluster: THROUGHLINE_CITUS_URL=postgres://… of its coordinator", () => undefined);
  });
} else {
  describeStoreConformance({
    name: "store-postgres on Citus, tenant layout",
    runner: kitRunner,
    open: () => openUnderTest(url, undefined, { layout: "tenant" }),
    openWithCodec: (codec) => openUnderTest(url, codec, { layout: "tenant" }),
  });

  describe("a schema of the tenant layout on Citus", () => {
    const schema = newSchema();
    let store: PostgresStore;

    beforeAll(async () => {
      store = createPostgresStore({ url, schema, layout: "tenant", notify: false });
      for (let writer = 0; writer < writers; writer++)
        await store.save(refOf(writer), { sessionId: `s${writer}` }, { ifRevision: null });
    });

    afterAll(() => store.close());

    it("has every table of a tenant in one group, and its functions run where the tenant is", async () => {
      await withClient(url, async (client) => {
        const nodes = await client.query(
          "SELECT count(*)::int AS count FROM pg_dist_node WHERE isactive AND noderole = 'primary' AND shouldhaveshards",
        );
        expect(nodes.rows[0].count).toBeGreaterThanOrEqual(2);
        const groups = await client.query(
          `SELECT c.relname AS table, p.colocationid AS group FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
           WHERE c.relnamespace = $1::regnamespace AND p.partmethod = 'h'`,
          [schema],
        );
        expect(groups.rows.map((row) => row.table).toSorted()).toEqual(spreadTables.toSorted());
        expect(new Set(groups.rows.map((row) => row.group)).size).toBe(1);
        const plan = await client.query(
          `EXPLAIN SELECT * FROM "${schema}".read_window_1($1, '', 'agent-1', $2, '', 10, 100000)`,
          [tenantOf(refOf(1)), refOf(1).key],
        );
        expect(plan.rows.map((row) => row["QUERY PLAN"]).join("\n")).toMatch(/Task Count: 1\b/);
      });
    });

    it("leaves nothing at the target of a relocation of a session that was purged meanwhile", async () => {
      const [ref, moved] = [{ ...refOf(7), key: "agent:agent-7:busy", namespace: "left" }, newSchema()];
      await using target = createPostgresStore({ url, schema: moved, notify: false, partitions: 2 });
      const outcomes = async (): Promise<readonly string[]> => {
        const found: string[] = [];
        for await (const { outcome } of relocateSessions(store, target, { namespace: "left" })) found.push(outcome);
        return found;
      };
      const copies = (): Promise<number> =>
        withClient(url, async (client) => (await client.query(`SELECT FROM "${moved}".records`)).rowCount ?? -1);
      await store.save(ref, { sessionId: "busy" }, { ifRevision: null });
      const turn = { action: "open", turnId: "t", owner: "o", leaseUntilMs: Date.now() + 60_000, fence: 1 } as const;
      await store.append(ref, [{ type: "message", message: { role: "user", content: "secret" } }], { turn });
      expect([await outcomes(), await copies()]).toEqual([["busy"], 1]);
      await store.append(ref, [], { turn: { action: "close", fence: 1 } });
      await store.remove(ref, { purge: true });
      expect([await outcomes(), await copies()]).toEqual([[], 0]);
    });

    it("loses nothing and doubles nothing while a shard moves under eight writers", async () => {
      const writing = Array.from({ length: writers }, (_, writer) => writeAll(store, writer));
      await withClient(url, async (client) => {
        const { rows } = await client.query(
          `SELECT s.shardid, s.nodename, s.nodeport, o.nodename AS to_name, o.nodeport AS to_port
           FROM citus_shards s JOIN pg_dist_node o ON o.isactive AND o.shouldhaveshards AND (o.nodename, o.nodeport) <> (s.nodename, s.nodeport)
           WHERE s.table_name = '"${schema}".records'::regclass
             AND s.shardid = get_shard_id_for_distribution_column('"${schema}".records', $1::bigint) LIMIT 1`,
          [tenantOf(refOf(1))],
        );
        const { shardid, nodename, nodeport, to_name: toName, to_port: toPort } = rows[0];
        await client.query("SELECT citus_move_shard_placement($1, $2, $3, $4, $5, 'force_logical')", [
          shardid,
          nodename,
          nodeport,
          toName,
          toPort,
        ]);
      });
      for (const [writer, acknowledged] of (await Promise.all(writing)).entries()) {
        const found: string[] = [];
        for await (const { records } of store.read(refOf(writer))) found.push(...records.map(({ id }) => id));
        expect(found).toEqual(acknowledged);
        expect(found).toHaveLength(2 * appendsEach);
      }
    });

    it("keeps agents apart by a role for each tenant, on every node", async () => {
      await using owner = createPostgresStore({ url, schema, rowSecurity: true, notify: false });
      await owner.list();
      const role = `role_${schema}`;
      await withClient(url, (client) =>
        client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'; ${readmeGrants(schema, role)}
          ${readmeGrants(schema, role, "a tenant").replaceAll("'main'", "'agent-1'")}`),
      );
      const roleUrl = new URL(url);
      [roleUrl.username, roleUrl.password] = [role, "secret"];
      await using mine = createPostgresStore({ url: roleUrl.href, schema, migrate: false, notify: false });
      expect((await mine.list()).sessions.map(({ ref }) => ref.agentId)).toEqual(["agent-1"]);
      await mine.append(refOf(1), [{ type: "message", message: { role: "user", content: "mine" } }]);
      await expect(
        mine.append(refOf(2), [{ type: "message", message: { role: "user", content: "x" } }]),
      ).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
      // The role's own SQL, at the tables of the shards on their nodes.
      const shards = await withClient(url, async (client) => {
        const { rows } = await client.query<{ name: string; port: number }>(
          `SELECT shard_name AS name, nodeport AS port FROM citus_shards WHERE table_name::text LIKE $1 AND table_name::text = ANY ($2)`,
          [`${schema}.%`, spreadTables.map((table) => `${schema}.${table}`)],
        );
        return Map.groupBy(rows, ({ port }) => port);
      });
      expect(shards.size).toBeGreaterThanOrEqual(2);
      for (const [port, tables] of shards) {
        roleUrl.port = String(port);
        await withClient(roleUrl.href, async (client) => {
          for (const { name } of tables) {
            const foreign = client.query(`SELECT FROM ${name} WHERE tenant <> ${tenantOf(refOf(1))} LIMIT 1`);
            const seen = await foreign.then(
              ({ rowCount }) => rowCount,
              (error: unknown) => (error as { code: string }).code,
            );
            expect([0, "42501"]).toContain(seen);
          }
        });
      }
    });

    it("asks the shard of one tenant in every statement about its sessions", async () => {
      await using listening = await listenToShards(url);
      await using mine = createPostgresStore({ pool: listening.pool, schema, notify: false });
      await mine.list();
      const opened = listening.statements.length;
      await everyWrite(mine, { ...refOf(6), key: "agent:agent-6:every" });
      const asked = listening.statements.slice(opened);
      expect(asked.filter(({ ranges }) => ranges.size > 1).map(({ text }) => text)).toEqual([]);
      expect(asked.filter(({ ranges }) => ranges.size === 1).length).toBeGreaterThan(50);
    });

    it("is made by an owner without further rights, and serves a role of one tenant in every statement", async () => {
      const [owned, owner, role] = [newSchema(), `owner_${schema}`, `tenant_${schema}`];
      const urlOf = (name: string): string => Object.assign(new URL(url), { username: name, password: "secret" }).href;
      await withClient(url, (client) =>
        client.query(`CREATE ROLE ${owner} LOGIN PASSWORD 'secret'; CREATE ROLE ${role} LOGIN PASSWORD 'secret';
          CREATE SCHEMA ${owned} AUTHORIZATION ${owner}`),
      );
      const given = { schema: owned, notify: false } as const;
      await using made = createPostgresStore({ ...given, url: urlOf(owner), layout: "tenant", rowSecurity: true });
      await everyWrite(made, refOf(1));
      await withClient(url, (client) =>
        client.query(`${readmeGrants(owned, role)}
          ${readmeGrants(owned, role, "a tenant").replaceAll("'main'", "'agent-1'")}`),
      );
      await using mine = createPostgresStore({ ...given, url: urlOf(role), migrate: false });
      await everyWrite(mine, refOf(1));
    });

    it("answers STORE_UNREACHABLE while a tenant gets a shard of its own, and goes on", async () => {
      const codes = new Set<string>();
      let isolated = false;
      const writing = [3, 4, 5].map(async (writer) => {
        while (!isolated)
          try {
            await store.append(refOf(writer), [{ type: "message", message: { role: "user", content: "x" } }]);
          } catch (error) {
            const { code, retryable } = error as { readonly code: string; readonly retryable: boolean };
            codes.add(`${code}, retryable: ${retryable}`);
          }
      });
      try {
        await withClient(url, (client) =>
          client.query(
            "SELECT isolate_tenant_to_new_shard($1::regclass, $2::bigint, 'CASCADE', shard_transfer_mode => 'block_writes')",
            [`${schema}.agents`, tenantOf(refOf(3))],
          ),
        );
      } finally {
        isolated = true;
        await Promise.all(writing);
      }
      expect([...codes].filter((code) => code !== "STORE_UNREACHABLE, retryable: true")).toEqual([]);
      await store.append(refOf(3), [{ type: "message", message: { role: "user", content: "after" } }]);
    });

    it("shows compactions and checkpoints of all nodes in the views", async () => {
      const ref = { ...refOf(5), key: "agent:agent-5:views" };
      await store.save(ref, { sessionId: "views" }, { ifRevision: null });
      const long = "x".repeat(300_000);
      await store.append(ref, [
        { type: "compaction", id: "first", summary: "poor", tokensBefore: 7, details: { needsRetry: true } },
        { type: "compaction", id: "long", summary: long, tokensBefore: 8 },
        { type: "checkpoint", id: "point", checkpoint: { summary: "done", topics: ["a"] } },
      ]);
      await store.append(ref, [], { entry: { summaryRetries: ["first"] } });
      const better = { kind: "summary-superseded", summaryId: "first", summary: "better" };
      await store.append(ref, [{ type: "custom", id: "note", data: better }]);
      await store.fork.fork(ref, { ...ref, key: `${ref.key}-fork` }, { sessionId: "views-fork" });
      await withClient(url, async (client) => {
        const { rows } = await client.query(
          `SELECT session_key, id, summary, needs_summary_retry AS retry FROM "${schema}".compactions
           WHERE agent_id = 'agent-5' ORDER BY session_key, seq`,
        );
        expect(rows).toEqual([
          { session_key: ref.key, id: "first", summary: "better", retry: true },
          { session_key: ref.key, id: "long", summary: long, retry: false },
          // The note about the better summary is a record of the origin alone.
          { session_key: `${ref.key}-fork`, id: "first", summary: "poor", retry: false },
          { session_key: `${ref.key}-fork`, id: "long", summary: long, retry: false },
        ]);
        const points = await client.query(
          `SELECT summary, topics FROM "${schema}".checkpoints WHERE agent_id = 'agent-5' AND session_id = 'views'`,
        );
        expect(points.rows).toEqual([{ summary: "done", topics: ["a"] }]);
      });
    });

    it("serves the tenants of other workers while one worker is frozen, and refuses its own as STORE_UNREACHABLE", async () => {
      const { frozen, served, frozenUrl } = await tenantsByWorker(schema, 12, 4);
      // A frozen connection is ended by the server a little after the store gave it up.
      const bounded = Object.assign(new URL(url), { search: "?options=-c%20statement_timeout%3D4000" }).href;
      const limits = { url: bounded, schema, timeoutMs: 3000, connectTimeoutMs: 3000, notify: false, pollMs: 100 };
      await using own = createPostgresStore(limits);
      await using follower = createPostgresStore(limits);
      for (const ref of [...frozen, ...served]) await own.save(ref, { sessionId: ref.agentId }, { ifRevision: null });
      await follower.list();
      const work = new FrozenWork({ own, follower, least: appendsEach }, { frozen, served });
      const thaw = await freeze(frozenUrl);
      try {
        await work.untilDone();
      } finally {
        thaw();
      }
      expect([...work.acknowledged.keys()].every((ref) => served.includes(ref))).toBe(true);
      expect([...work.refusals].toSorted()).toEqual(
        ["append", "list of all", "list", "search", "watch"].map(
          (kind) => `${kind}: STORE_UNREACHABLE, retryable: true`,
        ),
      );
      for (const ref of served) expect((await own.load(ref))?.head.lastSeq).toBe(work.acknowledged.get(ref));
      // What waited in the worker may still commit, so its tenants are only asked whether they go on.
      for (const ref of frozen) await own.append(ref, [said]);
    });

    it("finds the shard of a tenant as the cluster does", async () => {
      await withClient(url, async (client) => {
        for (const tenant of [
          "0",
          "-1",
          "9223372036854775807",
          ...Array.from({ length: 50 }, (_, at) => tenantOf(refOf(at))),
        ]) {
          const { rows } = await client.query("SELECT worker_hash($1::bigint) AS hash", [tenant]);
          expect([tenant, hashOf(BigInt(tenant))]).toEqual([tenant, rows[0].hash]);
        }
      });
    });

    it("refuses a backup, which would be of several moments", async () => {
      await expect(store.maintenance.backup("never.sql")).rejects.toMatchObject({ code: "STORE_UNSUPPORTED" });
    });
  });
}
