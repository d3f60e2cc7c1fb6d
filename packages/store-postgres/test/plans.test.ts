import type { SearchQuery, SessionRef } from "@throughline/core";
import { createPostgresStore, type PostgresPool, type PostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { layoutNamed, type Layout } from "../src/layout.ts";
import { makeStandIn } from "./migrate-beside.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

function refOf(index: number): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:plan-${index}` };
}

const fork = refOf(-1);
const draft = { type: "message", message: { role: "user", content: "words to be found" } };

interface ExplainingPool {
  readonly pool: PostgresPool;
  /** The plans of what was run since the last time. */
  taken(): readonly string[];
  end(): Promise<void>;
}

/** One connection that tells the plan of everything it runs, also inside functions. */
async function explainingPool(): Promise<ExplainingPool> {
  const inner = new pg.Pool({ connectionString: url, max: 1 });
  const plans: string[] = [];
  const client = await inner.connect();
  client.on("notice", ({ message = "" }) => plans.push(message));
  await client.query(`LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
    SET auto_explain.log_analyze = on; SET client_min_messages = log`);
  client.release();
  return { pool: inner, taken: () => plans.splice(0), end: () => inner.end() };
}

/** Tables that grow, and the partitions of one of them; whole scans of one row of state and of arrays are none. */
const grown =
  /Seq Scan on (sessions|records|keyed_appends|payloads|search_documents|search_positions|purged_sources)(_\d+)?\b/;

function scansOf(plans: readonly string[]): string[] {
  return plans.flatMap((plan) => plan.split("\n")).filter((line) => grown.test(line));
}

/** The indexes that were gone through, those of partitions under the name of their table's. */
function indexesOf(plans: readonly string[], parents: ReadonlyMap<string, string>): string[] {
  const found = plans.flatMap((plan) => [...plan.matchAll(/Index(?: Only)? Scan(?: Backward)? (?:using|on) (\w+)/g)]);
  return [...new Set(found.map(([, name = ""]) => parents.get(name) ?? name))].toSorted();
}

/** By the name of an index of a partition that of its table's, without the column that the tenant layout adds. */
async function parentIndexes(schema: string): Promise<ReadonlyMap<string, string>> {
  const { rows } = await withClient(url, (client) =>
    client.query<{ child: string; parent: string }>(
      `SELECT c.relname AS child, p.relname AS parent FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
       JOIN pg_class p ON p.oid = h.inhparent WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'i'`,
      [schema],
    ),
  );
  return new Map(rows.map(({ child, parent }) => [child, parent.replace("_tenant_", "_")]));
}

/**
 * The numbers of the partitions that one plan read or wrote, whatever the table: those of a tenant have one number. What
 * was planned and never executed does not count.
 */
function partitionsOf(plan: string): readonly string[] {
  const lines = plan.split("\n").filter((line) => !line.includes("(never executed)"));
  const named = lines.flatMap((line) => [
    ...line.matchAll(
      / on (?:agents|sessions|records|payloads|keyed_appends|search_documents|search_positions|partials|purged_sources)_(\d+)\b/g,
    ),
  ]);
  return [...new Set(named.map(([, number = ""]) => number))];
}

async function drain(pages: AsyncIterable<unknown>): Promise<void> {
  for await (const _each of pages);
}

function sourceOf(round: number): { readonly format: string; readonly sourceId: string } {
  return { format: "pi", sourceId: `source-${round}` };
}

function search(store: PostgresStore, query: SearchQuery): Promise<void> {
  return drain(store.search?.search(query) ?? expect.unreachable("no search"));
}

/** What is done, the index it must not do without, and how it is done for the n-th time. */
type Call = readonly [string, string, (store: PostgresStore, round: number) => Promise<unknown>];

const calls: readonly Call[] = [
  ["a turn", "sessions_address", (store) => store.append(refOf(1), [draft, draft], { windowFromSeq: 1 })],
  [
    "a turn with a key and a patch",
    "keyed_appends_pkey",
    (store, round) => store.append(refOf(1), [draft], { idempotencyKey: `k${round}`, entry: { model: "m" } }),
  ],
  [
    "a turn that is repeated",
    "records_pkey",
    (store, round) => store.append(refOf(1), [draft], { idempotencyKey: `k${round}` }),
  ],
  [
    "a turn of a fork with an id of its own",
    "records_id_session_no_key",
    (store, round) => store.append(fork, [{ ...draft, id: `own-${round}` }]),
  ],
  ["a window", "records_pkey", (store) => store.readWindow(refOf(2))],
  ["a page", "records_pkey", (store) => drain(store.read(refOf(3), { order: "descending", limit: 3 }))],
  ["a page of a fork", "records_pkey", (store) => drain(store.read(fork, { afterSeq: 40, limit: 3 }))],
  ["a load", "sessions_address", (store) => store.load(refOf(4))],
  ["a list", "sessions_listed", (store) => store.list()],
  ["a list of one agent", "sessions_listed_by_agent", (store) => store.list({ agentId: "main" })],
  ["a list of archived sessions", "sessions_listed", (store) => store.list({ state: "archived" })],
  ["a list by key", "sessions_address", (store) => store.list({ sort: "key", agentId: "main" })],
  [
    "a list by prefix",
    "sessions_address",
    (store) => store.list({ sort: "key", agentId: "main", keyPrefix: "agent:main:plan-7" }),
  ],
  ["a list by source", "sessions_source", (store, round) => store.list({ importedFrom: sourceOf(round), limit: 1 })],
  [
    "a list by source of one agent",
    "sessions_source",
    (store, round) => store.list({ importedFrom: sourceOf(round), agentId: "main", sort: "key" }),
  ],
  [
    "a look for the mark of a purged source",
    "purged_sources_pkey",
    (store, round) => store.list({ importedFrom: sourceOf(round) }),
  ],
  [
    "a search for any of some words",
    "search_documents_words",
    (store, round) => search(store, { anyOf: [`rare4${round}11`, "rare250", "absent"] }),
  ],
  [
    "a search of one agent for any of some words",
    "search_documents_words",
    (store) => search(store, { anyOf: ["rare250", "absent"], agentId: "main", state: "active" }),
  ],
  [
    "a search in one session for any of some words",
    "search_documents_pkey",
    (store) => search(store, { anyOf: ["rare250", "absent"], agentId: "main", key: refOf(2).key }),
  ],
  ["a search", "search_documents_words", (store, round) => search(store, { text: `rare4${round}11` })],
  [
    "a search in one session",
    "search_documents_words",
    (store) => search(store, { text: "rare250", key: refOf(2).key, agentId: "main", role: "user" }),
  ],
  ["a search for what a fork has of a purged session", "sessions_bases", (store) => search(store, { text: "rare650" })],
  [
    "the sharers of a record",
    "sessions_bases",
    (store) => store.fork.sharers?.(refOf(1), [1, 50]) ?? expect.unreachable(),
  ],
  ["what is left to be indexed", "sessions_appended", (store) => Promise.resolve(store.search?.lag())],
  [
    "a record by its id",
    "records_id_session_no_key",
    (store, round) => store.redact(refOf(5), [`r5-${round + 1}`], { reason: "test" }),
  ],
];

const rounds = [0, 1, 2, 3, 4, 5, 6];

/** What is about more than one agent's sessions; everything else asks one partition. */
const ofAllTenants = new Set([
  "a list",
  "a list of archived sessions",
  "a list by source",
  "a look for the mark of a purged source",
  "a search",
  "what is left to be indexed",
]);
const ofManyTenants = (name: string): boolean => ofAllTenants.has(name) || name.startsWith("a search for");

const layouts = ["plain", "tenant"] as const;

describe.skipIf(url === "").each(layouts)(
  `query plans on PostgreSQL, %s layout${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  (layout) => {
    const [empty, full] = [newSchema(), newSchema()];
    let explaining: ExplainingPool;
    let parents: ReadonlyMap<string, string>;

    beforeAll(async () => {
      for (const schema of [empty, full]) {
        if (layout === "tenant") await makeStandIn(url, schema, 4);
        await using store = createPostgresStore({ url, schema, partitions: 4 });
        await store.list();
        if (schema === full) await fill(schema, layoutNamed(layout), layout === "plain" ? 1000 : 8000);
        for (const index of schema === full ? [] : [1, 2, 3, 4, 5])
          await store.save(refOf(index), { sessionId: `plan-${index}` }, { ifRevision: null });
        await store.fork.fork(refOf(1), fork, { sessionId: "fork" });
        if (schema === empty) continue;
        await store.fork.fork(refOf(6), refOf(-6), { sessionId: "heir" });
        await store.remove(refOf(6), { purge: true });
        // The first search of a new index goes through all sessions, to see what forks have of purged ones.
        await search(store, { text: "words" });
      }
      explaining = await explainingPool();
      parents = await parentIndexes(full);
    });

    afterAll(() => explaining.end());

    /** Often enough for the plans that a connection keeps. */
    async function plansOf(schema: string, wanted: readonly Call[]): Promise<readonly string[]> {
      await using store = createPostgresStore({ pool: explaining.pool, schema, migrate: false, notify: false });
      await store.load(fork);
      explaining.taken();
      for (const round of rounds) for (const [, , call] of wanted) await call(store, round);
      return explaining.taken();
    }

    it.each(calls)("among 100,000 records of 1,000 sessions %s goes through %s", async (name, index, call) => {
      const plans = await plansOf(full, [[name, index, call]]);
      expect(scansOf(plans)).toEqual([]);
      expect(indexesOf(plans, parents)).toContain(index);
      if (layout === "plain") return;
      const most = Math.max(...plans.map((plan) => partitionsOf(plan).length));
      expect(most, plans.join("\n")).toBe(ofManyTenants(name) ? 4 : 1);
    });

    it.runIf(layout === "tenant")(
      "whatever is done to one session asks one partition",
      { tags: ["slow"] },
      async () => {
        await using store = createPostgresStore({ pool: explaining.pool, schema: full, migrate: false, notify: false });
        await store.list();
        for (const round of rounds)
          for (const [name, work] of Object.entries(lifeOf(store, round))) {
            explaining.taken();
            await work();
            const plans = explaining.taken();
            expect(plans.length, name).toBeGreaterThan(0);
            for (const plan of plans) expect(partitionsOf(plan).length, `${name}: ${plan}`).toBeLessThanOrEqual(1);
          }
      },
    );

    it("in empty tables, of which nothing is known, turns, windows, pages and loads go through indexes too", async () => {
      const plans = await plansOf(
        empty,
        calls.filter(([name]) => /^a (turn|window|page|load)/.test(name)),
      );
      expect(plans.length).toBeGreaterThan(40);
      expect(scansOf(plans)).toEqual([]);
    });

    it("without statistics a search of one agent finds the session of a record by its number", async () => {
      const plans = await plansOf(empty, [
        ["a search of an agent", "sessions_number", (store) => search(store, { text: "words", agentId: "main" })],
      ]);
      const ofRecord = plans.join("\n").match(/Index Scan using \w+ on sessions(?:_\d+)? w(?:_\d+)?\b/g) ?? [];
      const names = ofRecord.map((line) => /using (\w+)/.exec(line)?.[1] ?? "");
      expect([...new Set(names.map((name) => parents.get(name) ?? name))]).toEqual(["sessions_number"]);
    });
  },
);

/** A session from its beginning to its end, with forks and what hangs on it. Each step finds what the ones before it left. */
function lifeOf(store: PostgresStore, round: number): Readonly<Record<string, () => Promise<unknown>>> {
  const key = `agent:main:life-${round}`;
  const ref: SessionRef = { namespace: "", agentId: "main", key };
  const copy: SessionRef = { ...ref, key: `${key}-copy` };
  const of = (sessionId: string): string => `${sessionId}-${round}`;
  const owner = { turnId: "t", owner: "o" };
  const importedFrom = { format: "pi", sessionId: sourceOf(round).sourceId };
  const large = { ...draft, id: "large", message: { role: "user", content: "x".repeat(300_000) } };
  const partial = { v: 1 as const, sessionId: of("life"), turnId: "t", fence: 1, step: 1, attempt: 0, afterSeq: 2 };
  const said = { ...partial, provider: null, api: null, model: null, text: "so far", updatedMs: 1 };
  const open = { action: "open" as const, fence: 1, ...owner, leaseUntilMs: 4_000_000_000_000 };
  const keyed = { idempotencyKey: of("key"), turn: { action: "close" as const, fence: 1 } };
  return {
    begin: () => store.save(ref, { sessionId: of("life"), importedFrom }, { ifRevision: null, createdAtMs: 1 }),
    "append with a payload": () => store.append(ref, [{ ...draft, id: "small" }, large], { durability: "process" }),
    "open a turn": () => store.append(ref, [], { turn: open }),
    "write a partial": () => store.partials.write(ref, said),
    "read a partial": () => store.partials.read(ref),
    "append with a key": () => store.append(ref, [draft], { ...keyed, entry: { label: "x" } }),
    "append with that key again": () => store.append(ref, [draft], { ...keyed, entry: { label: "x" } }),
    "read the sources": () => drain(store.read(ref, { payload: "source" })),
    fork: () => store.fork.fork(ref, copy, { sessionId: of("copy"), atSeq: 2 }),
    "append to the fork": () => store.append(copy, [{ ...draft, id: "own" }]),
    "read the fork": () => drain(store.read(copy, { order: "descending" })),
    "window of the fork": () => store.readWindow(copy),
    sharers: () => store.fork.sharers?.(ref, [1, 2]) ?? expect.unreachable(),
    "search in the agent": () => search(store, { text: "words", agentId: "main" }),
    "search in the agent for any of some words": () => search(store, { anyOf: ["words", "found"], agentId: "main" }),
    "search in the session for any of some words": () => search(store, { anyOf: ["words"], agentId: "main", key }),
    "list of a source in the agent": () => store.list({ importedFrom: sourceOf(round), agentId: "main" }),
    redact: () => store.redact(ref, ["large"], { reason: "test", entryFields: ["label"] }),
    "remove a partial": () => store.partials.remove(ref, 1),
    rename: () => store.move(copy, { kind: "rename", key: `${key}-renamed` }),
    reset: () => store.save(ref, { sessionId: of("next") }, { ifRevision: 3 }),
    "load the archived one": () => store.load({ ...ref, archiveId: of("life") }),
    "list of the agent": () => store.list({ agentId: "main", limit: 5 }),
    "purge what a fork shares": () => store.remove({ ...ref, archiveId: of("life") }, { purge: true }),
    "purge the fork": () => store.remove({ ...copy, key: `${key}-renamed` }, { purge: true }),
    archive: () => store.remove(ref),
  };
}

/**
 * A thousand sessions of a hundred records each, with statistics, and sessions without records up to a number: a partition of
 * a few pages is read whole, whatever index it has.
 */
async function fill(schema: string, { first, values }: Layout, sessions: number): Promise<void> {
  const agents = ["main", ...Array.from({ length: 7 }, (_, index) => `agent${index}`)];
  const tenants = agents.map((agentId) => `('${agentId}', ${values({ namespace: "", agentId })[0] ?? 0}::bigint)`);
  const all = "planned p, generate_series(1, 100) seq WHERE n <= 1000";
  await withClient(url, (client) =>
    client.query(`SET synchronous_commit = off; SET search_path = "${schema}";
      CREATE TEMP TABLE planned AS SELECT n, agent, a.tenant
        FROM (SELECT n, CASE WHEN n <= 7 OR n % 7 = 0 THEN 'main' ELSE 'agent' || n % 7 END AS agent FROM generate_series(1, ${sessions}) n) s
        JOIN (VALUES ${tenants.join(", ")}) AS a (agent_id, tenant) ON a.agent_id = s.agent;
      INSERT INTO sessions (${first("tenant")}session_no, namespace, agent_id, key, archive_id, session_id, revision, last_seq, head_id,
          message_count, messages_ever, created_at_ms, updated_at_ms, appended_at_ms, entry_names, entry_values, source_digest)
        SELECT ${first("tenant")}1000 + n, '', agent, 'agent:' || agent || ':plan-' || n, CASE WHEN n % 10 = 9 THEN 'plan-' || n ELSE '' END,
          'plan-' || n, 1, CASE WHEN n <= 1000 THEN 100 ELSE 0 END, 'r' || n || '-100', 100, 100, n * 60000, n * 60000, n * 60000, ARRAY['"sessionId"'],
          ARRAY['"plan-' || n || '"'], CASE WHEN n % 2 = 0 THEN md5(n::text) END
        FROM planned;
      INSERT INTO purged_sources (${first("tenant")}namespace, source_digest, agent_id, purged_at_ms)
        SELECT ${first("tenant")}'', md5(n::text), agent, 0 FROM planned;
      INSERT INTO records (${first("tenant")}session_no, seq, ts_ms, stored_at_ms, crc, bytes, message_number, side, id, parent_id, type, role,
          rest)
        SELECT ${first("tenant")}1000 + n, seq, 0, 0, 0, 100, seq, false, 'r' || n || '-' || seq,
          CASE WHEN seq > 1 THEN 'r' || n || '-' || seq - 1 END, 'message', 'user',
          '"timestamp":"2026-01-02T03:04:05.006Z","message":{"role":"user","content":"rare' || n * 100 + seq || '"}}'
        FROM ${all};
      INSERT INTO keyed_appends (${first("tenant")}session_no, key, digest, number, at_ms, first_seq, last_seq, durability, revision, fence)
        SELECT ${first("tenant")}1000 + n, 'key-' || m, '', m, 0, m, m, 'disk', 1, 0 FROM planned, generate_series(1, 10) m;
      INSERT INTO search_documents (${first("tenant")}session_no, seq, ts_ms, role, words)
        SELECT ${first("tenant")}1000 + n, seq, 0, 'user', ('rare' || n * 100 + seq || ':1')::tsvector FROM ${all};
      INSERT INTO search_positions (${first("tenant")}session_no, indexed_seq) SELECT ${first("tenant")}1000 + n, 100 FROM planned;
      -- What autovacuum does: until then the newest words are a list that is read whole, and the planner counts on that.
      SELECT gin_clean_pending_list(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        JOIN pg_am m ON m.oid = c.relam WHERE m.amname = 'gin' AND c.relkind = 'i' AND c.relnamespace = '"${schema}"'::regnamespace;
      ANALYZE sessions, records, keyed_appends, search_documents, search_positions, purged_sources`),
  );
}
