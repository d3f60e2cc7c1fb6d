import type { SearchQuery, SessionRef } from "@throughline/core";
import { createPostgresStore, type PostgresPool, type PostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
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
const grown = /Seq Scan on (sessions|records|keyed_appends|payloads|search_documents|search_positions)(_\d+)?\b/;

function scansOf(plans: readonly string[]): string[] {
  return plans.flatMap((plan) => plan.split("\n")).filter((line) => grown.test(line));
}

/** The indexes that were gone through, those of partitions under the name of their table's. */
function indexesOf(plans: readonly string[]): string[] {
  const found = plans.flatMap((plan) => [...plan.matchAll(/Index(?: Only)? Scan(?: Backward)? (?:using|on) (\w+)/g)]);
  return [...new Set(found.map(([, name = ""]) => name.replace(/records_\d+/, "records")))].toSorted();
}

async function drain(pages: AsyncIterable<unknown>): Promise<void> {
  for await (const _each of pages);
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

describe.skipIf(url === "")(
  `query plans on PostgreSQL${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    const [empty, full] = [newSchema(), newSchema()];
    let explaining: ExplainingPool;

    beforeAll(async () => {
      for (const schema of [empty, full]) {
        await using store = createPostgresStore({ url, schema, partitions: 4 });
        await store.list();
        if (schema === full) await fill(schema);
        for (const index of schema === full ? [] : [1, 2, 3, 4, 5])
          await store.save(refOf(index), { sessionId: `plan-${index}` }, { ifRevision: null });
        await store.fork.fork(refOf(1), fork, { sessionId: "fork" });
        if (schema === empty) continue;
        await store.fork.fork(refOf(6), refOf(-6), { sessionId: "heir" });
        await store.remove(refOf(6), { purge: true });
      }
      explaining = await explainingPool();
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
      expect(indexesOf(plans)).toContain(index);
    });

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
      const ofRecord = plans.join("\n").match(/Index Scan using \w+ on sessions w\b/g) ?? [];
      expect([...new Set(ofRecord)]).toEqual(["Index Scan using sessions_number on sessions w"]);
    });
  },
);

/** A thousand sessions of a hundred records each, with statistics. */
async function fill(schema: string): Promise<void> {
  const all = "generate_series(1, 1000) n, generate_series(1, 100) seq";
  await withClient(url, (client) =>
    client.query(`SET synchronous_commit = off; SET search_path = "${schema}";
      INSERT INTO sessions (session_no, namespace, agent_id, key, archive_id, session_id, revision, last_seq, head_id, message_count,
          messages_ever, created_at_ms, updated_at_ms, appended_at_ms, entry_names, entry_values)
        SELECT 1000 + n, '', agent, 'agent:' || agent || ':plan-' || n, CASE WHEN n % 10 = 9 THEN 'plan-' || n ELSE '' END,
          'plan-' || n, 1, 100, 'r' || n || '-100', 100, 100, n * 60000, n * 60000, n * 60000, ARRAY['"sessionId"'],
          ARRAY['"plan-' || n || '"']
        FROM (SELECT n, CASE WHEN n <= 7 OR n % 7 = 0 THEN 'main' ELSE 'agent' || n % 7 END AS agent
          FROM generate_series(1, 1000) n) s;
      INSERT INTO records (session_no, seq, ts_ms, stored_at_ms, crc, bytes, message_number, side, id, parent_id, type, role, rest)
        SELECT 1000 + n, seq, 0, 0, 0, 100, seq, false, 'r' || n || '-' || seq, CASE WHEN seq > 1 THEN 'r' || n || '-' || seq - 1 END,
          'message', 'user', '"timestamp":"2026-01-02T03:04:05.006Z","message":{"role":"user","content":"rare' || n * 100 + seq || '"}}'
        FROM ${all};
      INSERT INTO keyed_appends (session_no, key, digest, number, at_ms, first_seq, last_seq, durability, revision, fence)
        SELECT 1000 + n, 'key-' || m, '', m, 0, m, m, 'disk', 1, 0 FROM generate_series(1, 1000) n, generate_series(1, 10) m;
      INSERT INTO search_documents (session_no, seq, ts_ms, role, words)
        SELECT 1000 + n, seq, 0, 'user', ('rare' || n * 100 + seq || ':1')::tsvector FROM ${all};
      INSERT INTO search_positions (session_no, indexed_seq) SELECT 1000 + n, 100 FROM generate_series(1, 1000) n;
      -- What autovacuum does: until then the newest words are a list that is read whole, and the planner counts on that.
      SELECT gin_clean_pending_list('search_documents_words');
      ANALYZE sessions, records, keyed_appends, search_documents, search_positions`),
  );
}
