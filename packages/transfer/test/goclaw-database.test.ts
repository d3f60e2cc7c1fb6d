import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import type { ImportFormat } from "../src/import-types.ts";
import { createSqliteStore } from "../../store-sqlite/src/index.ts";
import { exported, fixtureFolder, importAll, recordsOf, refOf } from "./fixture-folder.ts";

const shipped = `
  CREATE TABLE sessions (key TEXT PRIMARY KEY, id TEXT UNIQUE, created_at INTEGER, updated_at INTEGER, model TEXT,
    thinking_level TEXT, max_tokens INTEGER DEFAULT 200000, compaction_count INTEGER, total_tokens INTEGER,
    flushed_thresholds TEXT DEFAULT '[]', flush_actioned INTEGER);
  CREATE TABLE messages (id TEXT PRIMARY KEY, session_key TEXT, parent_id TEXT, timestamp INTEGER, role TEXT, content TEXT,
    tool_call_id TEXT, tool_name TEXT, tool_input BLOB, tool_result TEXT, tool_is_error BOOLEAN, source TEXT,
    input_tokens INTEGER, output_tokens INTEGER, raw_json TEXT, thinking TEXT);
  CREATE TABLE checkpoints (id TEXT PRIMARY KEY, session_key TEXT, timestamp INTEGER, summary TEXT, tokens_at_checkpoint INTEGER,
    message_count_at_checkpoint INTEGER, topics TEXT, key_decisions TEXT, open_questions TEXT, generated_by TEXT, covers_up_to TEXT);
  CREATE TABLE compactions (id TEXT PRIMARY KEY, session_key TEXT, timestamp INTEGER, summary TEXT, first_kept_entry_id TEXT,
    tokens_before INTEGER, tokens_after INTEGER, messages_removed INTEGER, from_checkpoint INTEGER, checkpoint_id TEXT,
    needs_summary_retry INTEGER);`;

function database(path: string, sql: string): void {
  const made = new DatabaseSync(path);
  made.exec(sql);
  made.close();
}

const records = async (
  store: ReturnType<typeof createMemoryStore>,
  source: { agentId: string | null; key: string | null },
): Promise<Record<string, unknown>[]> => (await recordsOf(store, refOf(source))).map(({ record }) => ({ ...record }));

describe("a database of GoClaw", () => {
  it("gives messages, calls, results, checkpoints and compactions in the order they were written [C36] [C37]", async () => {
    using folder = fixtureFolder();
    // Ids sort against the order, and times are whole seconds: only the order of insertion is right.
    database(
      folder.at("sessions.db"),
      `${shipped}
      INSERT INTO sessions VALUES ('agent:main:main', 'sess-1', 1770000000, 1770000100, 'claude-x', 'low', 200000, 1, 4321, '[25]', 1);
      INSERT INTO messages VALUES ('z9', 'agent:main:main', NULL, 1770000001, 'user', 'What is in a.txt?', NULL, NULL, NULL, NULL, 0, 'telegram', 0, 0, NULL, NULL);
      INSERT INTO messages VALUES ('y8', 'agent:main:main', 'z9', 1770000001, 'assistant', 'I look.', NULL, NULL, NULL, NULL, 0, NULL, 100, 20, NULL, 'hm');
      INSERT INTO messages VALUES ('x7', 'agent:main:main', 'y8', 1770000001, 'tool_use', '', 'call_1', 'read', '{"path":"a.txt"}', NULL, 0, NULL, 0, 0, NULL, NULL);
      INSERT INTO messages VALUES ('w6', 'agent:main:main', 'x7', 1770000001, 'tool_result', '', 'call_1', 'read', NULL, 'no such file', 1, NULL, 0, 0, NULL, NULL);
      INSERT INTO messages VALUES ('v5', 'agent:main:main', 'w6', 1770000005, 'assistant', 'It is not there.', NULL, NULL, NULL, NULL, 0, NULL, 0, 0, NULL, NULL);
      INSERT INTO checkpoints VALUES ('c1', 'agent:main:main', 1770000002, 'A file is missing.', 500, 2, '["files"]', '[]', '["where?"]', 'ollama', 'w6');
      INSERT INTO compactions VALUES ('k1', 'agent:main:main', 1770000009, 'They looked for a.txt.', 'v5', 900, 100, 4, 1, 'c1', 0);`,
    );
    const before = folder.state();
    const store = createMemoryStore();
    const [source] = await importAll(store, folder.at("sessions.db"));
    expect(source).toMatchObject({
      format: "goclaw",
      key: "agent:main:main",
      sessionId: "sess-1",
      state: "imported",
      records: 8,
      repaired: 0,
      lost: [],
    });
    const found = await records(store, source!);
    expect(found.map(({ type, id }) => `${String(type)} ${String(id)}`)).toEqual([
      expect.stringMatching(/^session header:goclaw-[0-9a-f]{16}$/),
      "message z9",
      "message y8",
      "message x7",
      "message w6",
      "checkpoint c1",
      "message v5",
      "compaction k1",
    ]);
    expect(found[2]?.["message"]).toMatchObject({
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm" },
        { type: "text", text: "I look." },
      ],
      usage: { input: 100, output: 20 },
    });
    expect(found[3]?.["message"]).toMatchObject({
      fragment: true,
      content: [{ type: "toolCall", id: "call_1", name: "read", arguments: { path: "a.txt" } }],
    });
    expect(found[4]?.["message"]).toMatchObject({
      role: "toolResult",
      toolCallId: "call_1",
      toolName: "read",
      isError: true,
    });
    expect(found[1]).toMatchObject({ goclaw: { source: "telegram" }, timestamp: "2026-02-02T02:40:01.000Z" });
    expect(found[7]).toMatchObject({ firstKeptEntryId: "v5", tokensBefore: 900, fromCheckpoint: "c1" });
    const entry = (await store.load(refOf(source!)))?.entry;
    expect(entry).toMatchObject({
      updatedAt: 1_770_000_100_000,
      model: "claude-x",
      totalTokens: 4321,
      compactionCount: 1,
      flushActioned: true,
    });
    expect((await importAll(store, folder.path)).map(({ state, records: more }) => [state, more])).toEqual([
      ["unchanged", 0],
    ]);
    expect(folder.state()).toEqual(before);
  });

  it("finds sessions of which only messages exist, and pairs results without ids by tool and order [C37]", async () => {
    using folder = fixtureFolder();
    database(
      folder.at("sessions.db"),
      `
      CREATE TABLE messages (id TEXT PRIMARY KEY, session_key TEXT, timestamp DATETIME, role TEXT, content TEXT, tool_name TEXT,
        tool_input BLOB, tool_result TEXT, tool_is_error BOOLEAN);
      CREATE TABLE compactions (id TEXT PRIMARY KEY, session_key TEXT, timestamp DATETIME, summary TEXT,
        first_kept_entry_id TEXT, tokens_before INTEGER, needs_summary_retry BOOLEAN);
      INSERT INTO messages VALUES ('m1', 'primary', '2026-02-01 10:00:00', 'user', 'go', NULL, NULL, NULL, NULL);
      INSERT INTO messages VALUES ('m2', 'primary', '2026-02-01 10:00:00', 'tool_use', NULL, 'read', x'7b2270223a317d', NULL, NULL);
      INSERT INTO messages VALUES ('m3', 'primary', '2026-02-01 10:00:00', 'tool_use', NULL, 'exec', 'not json', NULL, NULL);
      INSERT INTO messages VALUES ('m4', 'primary', '2026-02-01 10:00:01', 'tool_result', NULL, 'exec', NULL, 'done', 0);
      INSERT INTO messages VALUES ('m5', 'primary', '2026-02-01 10:00:01', 'tool_result', NULL, 'read', NULL, 'text', 0);
      INSERT INTO messages VALUES ('m6', 'primary', '2026-02-01 10:00:02', 'system', 'woken', NULL, NULL, NULL, NULL);`,
    );
    const store = createMemoryStore();
    const [source] = await importAll(store, folder.at("sessions.db"));
    expect(source).toMatchObject({ key: "primary", agentId: "main", state: "imported" });
    expect(source?.findings.map(({ code }) => code)).toContain("SESSION_UNINDEXED");
    const found = await records(store, source!);
    const calls = found.slice(2, 4).map(({ message }) => (message as { content: { id: string }[] }).content[0]);
    expect(calls).toMatchObject([
      { id: "m2", arguments: { p: 1 } },
      { id: "m3", arguments: {}, partialJson: "not json" },
    ]);
    expect(found.slice(4, 6).map(({ message }) => (message as { toolCallId: string }).toolCallId)).toEqual([
      "m3",
      "m2",
    ]);
    expect(found[6]).toMatchObject({ type: "custom_message", customType: "goclaw.system", content: "woken" });
  });

  it("reads records kept as JSON, as the second document shows them [C37]", async () => {
    using folder = fixtureFolder();
    const data = JSON.stringify({ message: { role: "user", content: [{ type: "text", text: "Hello" }] }, more: [1] });
    database(
      folder.at("x.db"),
      `
      CREATE TABLE sessions (key TEXT PRIMARY KEY, created_at INTEGER, updated_at INTEGER, metadata JSON);
      CREATE TABLE messages (id TEXT PRIMARY KEY, session_key TEXT NOT NULL, parent_id TEXT, type TEXT NOT NULL,
        timestamp INTEGER NOT NULL, data JSON NOT NULL);
      INSERT INTO sessions VALUES ('goclaw:main:main', 1770000000000, 1770000009000, '{"label":"Mine","x":1}');
      INSERT INTO messages VALUES ('1706803200000_a1b2', 'goclaw:main:main', NULL, 'message', 1706803200000, '${data}');
      INSERT INTO messages VALUES ('bad', 'goclaw:main:main', NULL, 'message', 1706803200001, '{broken');`,
    );
    const store = createMemoryStore();
    const [source] = await importAll(store, folder.at("x.db"));
    expect(source).toMatchObject({ key: "goclaw:main:main", state: "imported", records: 3, repaired: 1, lost: [] });
    expect((await store.load(refOf(source!)))?.entry).toMatchObject({
      label: "Mine",
      x: 1,
      updatedAt: 1_770_000_009_000,
    });
    expect((await records(store, source!))[1]).toMatchObject({ id: "1706803200000_a1b2", more: [1] });
    expect(await exported(store, refOf(source!), "jsonl")).toContain("{broken\n");
  });

  it("is refused, and not guessed at, when a retry has rewritten what was imported", async () => {
    using folder = fixtureFolder();
    const path = folder.at("sessions.db");
    database(
      path,
      `${shipped}
      INSERT INTO messages (id, session_key, timestamp, role, content) VALUES ('a', 'k:main:x', 1770000001, 'user', 'one');
      INSERT INTO compactions (id, session_key, timestamp, summary, first_kept_entry_id) VALUES ('k', 'k:main:x', 1770000002, 'stub', 'a');`,
    );
    const store = createMemoryStore();
    expect((await importAll(store, path))[0]?.state).toBe("imported");
    database(
      path,
      "INSERT INTO messages (id, session_key, timestamp, role, content) VALUES ('b', 'k:main:x', 1770000003, 'user', 'two')",
    );
    expect((await importAll(store, path))[0]).toMatchObject({ state: "grown", records: 1 });
    database(path, "UPDATE compactions SET summary = 'better'");
    expect((await importAll(store, path))[0]?.error?.code).toBe("SOURCE_CHANGED");
  });

  it("says of a store of its own that it is copied and not imported", async () => {
    using folder = fixtureFolder();
    database(folder.at("own.db"), "CREATE TABLE store_info (name TEXT PRIMARY KEY, value TEXT NOT NULL)");
    const [source] = await importAll(createMemoryStore(), folder.at("own.db"));
    expect(source?.error).toMatchObject({ code: "INPUT_INVALID", remedy: expect.stringContaining("throughline copy") });
  });
});

describe("a session of ClawCode", () => {
  it("brings the id of its SDK session, also where only the file beside the transcript has it [C43]", async () => {
    const line = '{"type":"session","version":3,"id":"s","timestamp":"2026-02-01T16:10:50.414Z","cwd":"/"}\n';
    const entries = {
      "agent:codex:main": { sessionId: "s" },
      "agent:codex:two": { sessionId: "t", sdkSessionId: "own" },
    };
    using folder = fixtureFolder({
      "agents/codex/sessions/sessions.json": JSON.stringify(entries),
      "agents/codex/sessions/s.jsonl": line,
      "agents/codex/sessions/s.jsonl.claude-sdk.json": '{"resumeSessionId":"sdk-1","updatedAt":1}',
      "agents/codex/sessions/t.jsonl": line.replace('"s"', '"t"'),
      "agents/codex/sessions/t.claude-sdk.json": '{"resumeSessionId":"sdk-2"}',
    });
    const store = createMemoryStore();
    const sources = await importAll(store, folder.path);
    const ids = await Promise.all(
      sources.map(async (source) => (await store.load(refOf(source)))?.entry["sdkSessionId"]),
    );
    expect(ids).toEqual(["sdk-1", "own"]);
  });

  it("stays purged when its session row comes after the messages, with another id", async () => {
    using folder = fixtureFolder();
    const path = folder.at("sessions.db");
    const store = createMemoryStore();
    database(
      path,
      `${shipped} INSERT INTO messages VALUES ('a', 'agent:main:main', NULL, 1, 'user', 'hi', NULL, NULL, NULL, NULL, 0, NULL, 0, 0, NULL, NULL);`,
    );
    const [source] = await importAll(store, path);
    await store.remove(refOf(source!), { purge: true });
    database(path, "INSERT INTO sessions (key, id) VALUES ('agent:main:main', '0b83cd1e-54ce-4a39-9089-188d2669ead4')");
    expect((await importAll(store, path)).map(({ state }) => state)).toEqual(["skipped"]);
  });

  it("says of every row what was odd in it, and keeps what has no place in a record [C36]", async () => {
    using folder = fixtureFolder();
    database(
      folder.at("sessions.db"),
      `${shipped}
      INSERT INTO messages (id, session_key, timestamp, role, content) VALUES
        ('a', 'agent:main:main', 1770000001, 'user', 'hello'), ('b', 'agent:main:main', NULL, 'user', 'when?'),
        ('c', 'agent:main:main', 1770000002, 'weird', 'zz'), (NULL, 'agent:main:main', 1770000003, 'user', 'no id'),
        ('d', 'agent:main:main', 1770000003, 'user', 'after it'), ('e', '', 1770000004, 'user', 'no key'),
        ('f', NULL, 1770000004, 'user', 'none either');
      INSERT INTO checkpoints (id, session_key, timestamp, summary, topics, key_decisions, open_questions)
        VALUES ('p', 'agent:main:main', 1770000002, 'cp', '["t"]', '[]', 'bad json');
      INSERT INTO compactions (id, session_key, timestamp, summary, first_kept_entry_id, needs_summary_retry)
        VALUES ('k', 'agent:main:main', 1770000002, 'sum', 'a', 1);`,
    );
    await using store = createSqliteStore({ path: folder.at("own.db") });
    const [keyed, unkeyed] = await importAll(store, folder.at("sessions.db"));
    expect(unkeyed).toMatchObject({ state: "imported", records: 3, lines: 3, agentId: "main" });
    expect(unkeyed?.key).toMatch(/^agent:main:import:direct:goclaw-/);
    expect(unkeyed?.findings.map(({ code }) => code)).toEqual(["SESSION_UNINDEXED"]);
    expect(keyed?.findings.map(({ message }) => message)).toEqual([
      expect.stringContaining("no row for this key"),
      expect.stringContaining('1 rows have the role "weird"'),
      expect.stringContaining("1 rows state no time"),
      expect.stringContaining('"p" has no list in open_questions'),
    ]);
    const found = (await recordsOf(store, refOf(keyed!))).map(({ record }) => record);
    expect(found.map(({ id, parentId, timestamp }) => [id, parentId, timestamp.slice(17, 19)])).toEqual([
      [expect.stringMatching(/^header:/), null, "01"],
      ["a", null, "01"],
      ["b", "a", "01"],
      ["c", "b", "02"],
      ["p", "c", "02"],
      ["k", "c", "02"],
      ["row-4", "k", "03"],
      ["d", "row-4", "03"],
    ]);
    expect(found[3]).toMatchObject({ message: { role: "user" }, goclaw: { role: "weird" } });
    expect(found[4]).toMatchObject({ checkpoint: { topics: ["t"] }, goclaw: { open_questions: "bad json" } });
    const file = new DatabaseSync(folder.at("own.db"), { readOnly: true });
    expect(file.prepare("SELECT needs_summary_retry FROM compactions").get()).toEqual({ needs_summary_retry: 1 });
    file.close();
  });

  it("takes a checkpoint without a time for as old as the one before it", async () => {
    using folder = fixtureFolder();
    database(
      folder.at("sessions.db"),
      `${shipped}
      INSERT INTO messages (id, session_key, timestamp, role, content) VALUES
        ('a', 'k', 1770000001, 'user', 'x'), ('b', 'k', 1770000005, 'user', 'y');
      INSERT INTO checkpoints (id, session_key, timestamp, summary) VALUES
        ('p', 'k', 1770000002, 'first'), ('q', 'k', NULL, 'second');`,
    );
    const store = createMemoryStore();
    const [source] = await importAll(store, folder.at("sessions.db"));
    const found = (await recordsOf(store, refOf(source!))).slice(1).map(({ record }) => record);
    expect(found.map(({ id, timestamp }) => [id, timestamp.slice(17, 19)])).toEqual([
      ["a", "01"],
      ["p", "02"],
      ["q", "02"],
      ["b", "05"],
    ]);
  });

  it("goes on when the row of a session, or a message of a checkpoint's second, comes later", async () => {
    using folder = fixtureFolder();
    const path = folder.at("sessions.db");
    const nowSeconds = Math.floor(Date.now() / 1000);
    const add = (sql: string): void => database(path, sql);
    add(`${shipped}
      INSERT INTO messages (id, session_key, timestamp, role, content) VALUES ('a', 'k', ${nowSeconds - 5}, 'user', 'x');
      INSERT INTO checkpoints (id, session_key, timestamp, summary) VALUES ('p', 'k', ${nowSeconds + 60}, 'cp');`);
    const store = createMemoryStore();
    const outcome = async (): Promise<unknown[]> =>
      (await importAll(store, path)).map(({ key, state, records: count, error }) => [key, state, count, error]);
    // The checkpoint's second is not over: what is written in it may belong before.
    expect(await outcome()).toEqual([["k", "imported", 2, null]]);
    add("INSERT INTO sessions (key, id, created_at) VALUES ('k', 'sess-9', 1);");
    expect(await outcome()).toEqual([["k", "unchanged", 0, null]]);
    add(`INSERT INTO messages (id, session_key, timestamp, role, content) VALUES
      ('b', 'k', ${nowSeconds + 60}, 'user', 'y'), ('c', 'k', ${nowSeconds + 61}, 'user', 'z');`);
    expect(await outcome()).toEqual([["k", "grown", 3, null]]);
    expect((await recordsOf(store, { namespace: "", agentId: "main", key: "k" })).map(({ id }) => id).slice(1)).toEqual(
      ["a", "b", "p", "c"],
    );
  });

  it("is found in a state directory that holds nothing else, and beside another [C36]", async () => {
    using folder = fixtureFolder({ "home/goclaw/other.txt": "" });
    const sql = (key: string): string =>
      `${shipped} INSERT INTO messages (id, session_key, timestamp, role, content) VALUES ('a', '${key}', 1, 'user', 'x');`;
    database(folder.at("home/goclaw/sessions.db"), sql("inner"));
    const keys = async (from: "auto" | "goclaw" | "openclaw-sqlite" = "auto"): Promise<unknown[]> =>
      (await importAll(createMemoryStore(), folder.at("home"), { from })).map(({ key, state }) => [key, state]);
    expect(await keys()).toEqual([["inner", "imported"]]);
    database(folder.at("home/sessions.db"), sql("outer"));
    expect(await keys()).toEqual([
      ["outer", "imported"],
      ["inner", "imported"],
    ]);
    expect(await keys("goclaw")).toEqual(await keys());
    expect((await keys("openclaw-sqlite")).map((row) => (row as unknown[])[1])).toEqual(["skipped", "skipped"]);
  });

  it("is refused as a format it is not, as is a file that is no database", async () => {
    using folder = fixtureFolder({ "x.jsonl": '{"type":"user","content":"Hello","ts":1}\n' });
    database(folder.at("sessions.db"), `${shipped} INSERT INTO sessions (key, id) VALUES ('k', 's');`);
    const codes = async (name: string, from: ImportFormat): Promise<unknown[]> =>
      (await importAll(createMemoryStore(), folder.at(name), { from })).map(({ state, error }) => [state, error?.code]);
    for (const from of ["pi", "openclaw", "jsonl", "openclaw-sqlite"] as const)
      expect(await codes("sessions.db", from)).toEqual([["refused", "INPUT_INVALID"]]);
    for (const from of ["goclaw", "openclaw-sqlite"] as const)
      expect(await codes("x.jsonl", from)).toEqual([["refused", "INPUT_INVALID"]]);
    expect(await codes("sessions.db", "goclaw")).toEqual([["imported", undefined]]);
  });
});
