import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { buildContext } from "@throughline/history";
import { createMemoryStore } from "@throughline/store-memory";
import { redactRecords, type SessionStore } from "@throughline/core";
import type { ImportSource } from "../src/import-types.ts";
import { describe, expect, it } from "vitest";
import { exported, fixtureFolder, importAll, recordsOf, refOf } from "./fixture-folder.ts";

async function said(store: SessionStore, source: ImportSource | undefined): Promise<readonly string[]> {
  if (source === undefined) return [];
  const state = await store.load(refOf(source));
  const { messages } = buildContext(await recordsOf(store, refOf(source)), { headId: state?.head.headId ?? null });
  return messages.map(
    ({ role, content }) => `${role}: ${content.map((block) => ("text" in block ? block.text : block.type)).join(" ")}`,
  );
}

function run(path: string, sql: string, ...rows: readonly (readonly (string | number | null)[])[]): void {
  const database = new DatabaseSync(path);
  const statement = rows.length === 0 ? null : database.prepare(sql);
  if (statement === null) database.exec(sql);
  for (const row of rows) statement?.run(...row);
  database.close();
}

const opencodeTables = `
  CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT, directory TEXT, title TEXT, revert TEXT);
  CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
  CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);`;
const addSession = "INSERT INTO session VALUES (?, 'global', ?, 's', '/home/u', ?, ?)";
const addMessage = "INSERT INTO message VALUES (?, 'ses_1', ?, 0, ?)";
const addPart = "INSERT INTO part VALUES (?, ?, 'ses_1', ?)";
const user = JSON.stringify({ role: "user", time: { created: 1 }, agent: "build" });
const assistant = (fields: object): string =>
  JSON.stringify({ role: "assistant", modelID: "m", providerID: "p", tokens: { input: 1, output: 2 }, ...fields });

describe("the database of opencode", () => {
  it("is read by messages with their parts, and grows by those that are complete", async () => {
    using folder = fixtureFolder();
    const path = folder.at("opencode.db");
    run(path, opencodeTables);
    run(path, addSession, ["ses_1", null, "A file", null], ["ses_2", "ses_1", "", null]);
    run(path, addMessage, ["msg_1", 1000, user], ["msg_2", 2000, assistant({ time: { created: 2 } })]);
    run(
      path,
      addPart,
      ["prt_1", "msg_1", '{"type":"text",\n"text":"Read."}'],
      ["prt_2", "msg_2", '{"type":"text","text":"I re"}'],
    );
    await using store = createMemoryStore();
    const [first, child] = await importAll(store, path);
    // The reply is still being written.
    expect(first).toMatchObject({ format: "opencode", state: "imported", sessionId: "ses_1", records: 1, error: null });
    expect(first?.findings.map(({ code }) => code)).toEqual(["SOURCE_UNREAD"]);
    expect(child).toMatchObject({ sessionId: "ses_2", records: 0, findings: [] });
    expect((await store.load(refOf(child as ImportSource)))?.entry).toMatchObject({
      spawnedBy: first?.key,
      cwd: "/home/u",
    });
    run(path, "UPDATE message SET data = ? WHERE id = 'msg_2'", [assistant({ time: { created: 2, completed: 3 } })]);
    const call = {
      type: "tool",
      tool: "read",
      callID: "c1",
      state: { status: "completed", input: {}, output: "hello" },
    };
    run(path, addPart, ["prt_3", "msg_2", JSON.stringify(call)], ["prt_4", "msg_2", "{broken"]);
    const [grown] = await importAll(store, path, { from: "opencode" });
    expect(grown).toMatchObject({ state: "grown", records: 1, derived: 1, error: null });
    expect(await said(store, grown)).toEqual(["user: Read.", "assistant: I re toolCall", "toolResult: hello"]);
    expect((await importAll(store, path)).map(({ state }) => state)).toEqual(["unchanged", "unchanged"]);
    expect((await store.load(refOf(grown as ImportSource)))?.entry).toMatchObject({ title: "A file", cwd: "/home/u" });
    const written = JSON.parse(await exported(store, refOf(grown as ImportSource), "opencode")) as {
      info: object;
      messages: object[];
    };
    expect([written.info, written.messages.length]).toMatchObject([{ id: "ses_1", title: "A file" }, 2]);
    expect(existsSync(`${path}-wal`) || existsSync(`${path}-shm`)).toBe(false);
  });

  it("keeps what was taken back out of the context, and refuses a message that was changed", async () => {
    using folder = fixtureFolder();
    const path = folder.write("opencode/opencode.db", "");
    run(path, opencodeTables);
    run(path, addSession, ["ses_1", null, "T", '{"messageID":"msg_2"}']);
    run(path, addMessage, ["msg_1", 1, user], ["msg_2", 2, user], ["msg_3", 3, user]);
    run(
      path,
      addPart,
      ["p1", "msg_1", '{"type":"text","text":"A"}'],
      ["p2", "msg_2", '{"type":"text","text":"B"}'],
      ["p3", "msg_3", '{"type":"text","text":"C"}'],
    );
    await using store = createMemoryStore();
    // Below the folder that holds the program's data.
    const [source] = await importAll(store, folder.path);
    expect(source).toMatchObject({ format: "opencode", records: 3 });
    expect(await said(store, source)).toEqual(["user: A"]);
    run(path, "UPDATE part SET data = ? WHERE id = 'p1'", ['{"type":"text","text":"Z"}']);
    expect((await importAll(store, path))[0]?.error?.code).toBe("SOURCE_CHANGED");
  });
});

describe("a database whose rows are written over", () => {
  it("keeps what was redacted away, refuses rows that changed, and leaves a purged session alone", async () => {
    using folder = fixtureFolder();
    const path = folder.at("opencode.db");
    run(path, opencodeTables);
    run(path, addSession, ["ses_1", null, "T", null]);
    run(path, addMessage, ["msg_1", 1, user], ["msg_2", 2, user]);
    run(
      path,
      addPart,
      ["p1", "msg_1", '{"type":"text","text":"A"}'],
      ["p2", "msg_2", '{"type":"text","text":"sk-secret"}'],
    );
    await using store = createMemoryStore();
    const [source] = (await importAll(store, path)) as [ImportSource];
    await redactRecords(store, refOf(source), ["msg_2"], { reason: "secret" });
    expect((await importAll(store, path))[0]?.state).toBe("unchanged");
    run(path, addMessage, ["msg_3", 3, user]);
    run(path, addPart, ["p3", "msg_3", '{"type":"text","text":"C"}']);
    expect((await importAll(store, path))[0]).toMatchObject({ state: "grown", records: 1 });
    expect(JSON.stringify(await recordsOf(store, refOf(source)))).not.toContain("sk-secret");
    // The program took a message back: what it has now is imported beside.
    run(path, "DELETE FROM message WHERE id = 'msg_2'");
    expect((await importAll(store, path))[0]?.error?.code).toBe("SOURCE_CHANGED");
    expect(await said(store, source)).toHaveLength(3);
    const [beside] = await importAll(store, path, { key: "agent:main:import:direct:beside" });
    expect([beside?.state, beside?.error?.message]).toEqual(["imported", undefined]);
    expect(await said(store, beside)).toEqual(["user: A", "user: C"]);
    await store.remove(refOf(beside as ImportSource), { purge: true });
    await store.remove(refOf(source), { purge: true });
    const [left] = await importAll(store, path);
    expect([left?.state, left?.findings.map(({ code }) => code)]).toEqual(["skipped", ["SESSION_LEFT_ALONE"]]);
  });
});

const agentTables = `
  CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP);
  CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, message_data TEXT, created_at TIMESTAMP);`;

describe("the database of the OpenAI Agents SDK", () => {
  it("is read by items, broken ones included, and written as a list", async () => {
    using folder = fixtureFolder();
    const path = folder.at("sessions.db");
    run(path, agentTables);
    const add =
      "INSERT INTO agent_messages (session_id, message_data, created_at) VALUES (?, ?, '2026-11-23 10:00:00')";
    run(
      path,
      add,
      ["s1", '{"role":"user","content":"Weather?"}'],
      ["s1", '{"role": "user", "content": "torn'],
      ["s2", '{"role":"user","content":"Other"}'],
    );
    await using store = createMemoryStore();
    const sources = await importAll(store, path);
    expect(sources.map(({ format, sessionId, records, repaired }) => [format, sessionId, records, repaired])).toEqual([
      ["openai-agents", "s1", 2, 1],
      ["openai-agents", "s2", 1, 0],
    ]);
    run(path, add, ["s1", '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Cold."}]}']);
    const [grown] = await importAll(store, path);
    expect(await said(store, grown)).toEqual(["user: Weather?", "assistant: Cold."]);
    const [first] = await recordsOf(store, refOf(grown as ImportSource));
    expect([first?.tsMs, first?.source]).toEqual([
      Date.UTC(2026, 10, 23, 10),
      '{"row":1,"created_at":"2026-11-23T10:00:00Z","message_data":"{\\"role\\":\\"user\\",\\"content\\":\\"Weather?\\"}"}',
    ]);
    const items = JSON.parse(await exported(store, refOf(grown as ImportSource), "openai-agents")) as object[];
    expect(items).toMatchObject([{ role: "user" }, { role: "assistant", content: [{ text: "Cold." }] }]);
  });
});

const graphTables = `
  CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB);
  CREATE TABLE writes (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT, idx INTEGER, channel TEXT, type TEXT, value BLOB);`;
const addCheckpoint = "INSERT INTO checkpoints VALUES ('t1', ?, ?, ?, ?, ?, '{}')";

function langchain(name: string, kwargs: object): object {
  return { lc: 1, type: "constructor", id: ["langchain_core", "messages", name], kwargs };
}

function checkpoint(id: string, messages: readonly object[], channels: object = {}): string {
  return JSON.stringify({ v: 4, id, ts: "2026-11-23T14:48:20.217Z", channel_values: { messages, ...channels } });
}

const human = langchain("HumanMessage", { id: "u1", content: "Weather?" });
const calling = langchain("AIMessage", {
  id: "a1",
  content: [
    { type: "text", text: "Looking." },
    { type: "tool_use", id: "c1", name: "weather", input: {} },
  ],
  tool_calls: [{ id: "c1", name: "weather", args: { city: "Oslo" } }],
  usage_metadata: { input_tokens: 10, output_tokens: 5, input_token_details: { cache_read: 4 } },
});
const told = langchain("ToolMessage", { id: "t1", tool_call_id: "c1", content: "-3", status: "error" });

describe("the database of LangGraph", () => {
  it("is read by what each checkpoint adds, forks and replacements included", async () => {
    using folder = fixtureFolder();
    const path = folder.at("graph.sqlite");
    run(path, graphTables);
    run(
      path,
      addCheckpoint,
      ["", "1", null, "json", checkpoint("1", [], { state: { n: 1 } })],
      ["", "2", "1", "json", checkpoint("2", [human], { state: { n: 1 } })],
      ["sub", "21", null, "json", checkpoint("21", [langchain("HumanMessage", { content: "inner" })])],
      ["", "3", "2", "json", checkpoint("3", [human, calling, told], { state: { n: 2 } })],
    );
    await using store = createMemoryStore();
    const [source] = await importAll(store, path);
    expect(source).toMatchObject({ format: "langgraph", sessionId: "t1", records: 4, derived: 3, error: null });
    expect(await said(store, source)).toEqual(["user: Weather?", "assistant: Looking. toolCall", "toolResult: -3"]);
    const records = await recordsOf(store, refOf(source as ImportSource));
    const channels = records.flatMap(
      ({ record }) => (record["data"] as { channels?: object } | undefined)?.channels ?? [],
    );
    expect(channels).toEqual([{ state: { n: 1 } }, {}, {}, { state: { n: 2 } }]);
    expect(
      records.find(({ record }) => record["type"] === "message" && "usage" in (record["message"] as object))?.record[
        "message"
      ],
    ).toMatchObject({
      usage: { input: 6, cacheRead: 4, output: 5 },
    });
    // A fork of the second checkpoint, and one whose messages do not begin with its parent's.
    run(path, addCheckpoint, [
      "",
      "4",
      "2",
      "json",
      checkpoint("4", [human, langchain("HumanMessage", { content: "Or Bergen?" })]),
    ]);
    const [forked] = await importAll(store, path);
    expect(await said(store, forked)).toEqual(["user: Weather?", "user: Or Bergen?"]);
    run(path, addCheckpoint, ["", "5", "4", "json", checkpoint("5", [langchain("AIMessage", { content: "Short." })])]);
    const [replaced] = await importAll(store, path);
    expect(await said(store, replaced)).toEqual(["assistant: Short."]);
    expect((await importAll(store, path))[0]?.state).toBe("unchanged");
  });

  it("of another serializer is kept without what it says, and that is reported", async () => {
    using folder = fixtureFolder();
    const path = folder.at("graph.sqlite");
    run(path, graphTables);
    run(path, addCheckpoint, ["", "1", null, "msgpack", "\u0081\u00a1"], ["", "2", null, "json", "{broken"]);
    await using store = createMemoryStore();
    const [source] = await importAll(store, path);
    expect(source).toMatchObject({ records: 2, repaired: 2, error: null });
    expect(source?.findings.map(({ code }) => code)).toEqual(["RECORD_INVALID", "RECORD_INVALID"]);
  });
});

const gooseTables = `
  CREATE TABLE schema_version (version INTEGER);
  CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT, working_dir TEXT, extension_data TEXT, parent_session_id TEXT);
  CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);`;
const addGoose =
  "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json) VALUES (?, 'g1', ?, ?, 1790000000, ?)";

describe("the database of Goose", () => {
  it("is read by messages, broken ones included, and grows", async () => {
    using folder = fixtureFolder();
    const path = folder.write("goose/sessions/sessions.db", "");
    run(path, gooseTables);
    run(
      path,
      "INSERT INTO sessions VALUES (?, ?, ?, '/home/u', '{\"token\":\"sk-secret\"}', ?)",
      ["g1", "A file", "", null],
      ["g2", "", "Inner", "g1"],
    );
    run(
      path,
      addGoose,
      ["m1", "user", '[{"type":"text",\n"text":"Read."}]', null],
      ["m2", "assistant", "{broken", "{}"],
      ["m3", "assistant", '[{"type":"text","text":"Old"}]', '{"agentVisible":false}'],
    );
    await using store = createMemoryStore();
    const [first, inner] = await importAll(store, folder.path);
    expect(first).toMatchObject({ format: "goose", sessionId: "g1", records: 3, repaired: 1, lost: [], error: null });
    expect((await store.load(refOf(first as ImportSource)))?.entry).toMatchObject({ title: "A file", cwd: "/home/u" });
    expect((await store.load(refOf(inner as ImportSource)))?.entry).toMatchObject({ spawnedBy: first?.key });
    run(path, addGoose, ["m4", "assistant", '[{"type":"text","text":"Done."}]', null]);
    const [grown] = await importAll(store, path, { from: "goose" });
    expect(grown).toMatchObject({ state: "grown", records: 1 });
    expect(await said(store, grown)).toEqual(["user: Read.", "assistant: Done."]);
    const records = await recordsOf(store, refOf(grown as ImportSource));
    expect(JSON.stringify(records)).not.toContain("sk-secret");
    // A compaction of the program rewrites its rows.
    run(path, "UPDATE messages SET metadata_json = '{\"agentVisible\":false}' WHERE message_id = 'm1'");
    expect((await importAll(store, path))[0]?.error?.code).toBe("SOURCE_CHANGED");
  });

  it("of an older version has fewer columns", async () => {
    using folder = fixtureFolder();
    const path = folder.at("sessions.db");
    run(
      path,
      `CREATE TABLE sessions (id TEXT PRIMARY KEY, description TEXT, working_dir TEXT);
       CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT);
       INSERT INTO sessions VALUES ('g1', 'Old', '/w');
       INSERT INTO messages VALUES (1, 'g1', 'user', '[{"type":"text","text":"Hi"}]');`,
    );
    await using store = createMemoryStore();
    const [source] = await importAll(store, path);
    expect(source).toMatchObject({ format: "goose", records: 1, error: null });
    expect(await said(store, source)).toEqual(["user: Hi"]);
  });
});

const addCursor = "INSERT INTO cursorDiskKV VALUES (?, ?)";
const cursorTables = `
  CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
  CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
  INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', 'tok-secret');`;
const composer = {
  _v: 16,
  composerId: "c1",
  name: "A file",
  blobEncryptionKey: "key-secret",
  fullConversationHeadersOnly: [{ bubbleId: "b2", type: 1 }, { bubbleId: "b1", type: 2 }, { bubbleId: "gone" }],
};

describe("the store of Cursor", () => {
  it("is read in the order of its lists, and no key or token of it goes anywhere", async () => {
    using folder = fixtureFolder();
    const path = folder.at("state.vscdb");
    run(path, cursorTables);
    run(
      path,
      addCursor,
      ["composerData:c1", JSON.stringify(composer)],
      ["composerData:c2", "{broken"],
      ["bubbleId:c1:b1", JSON.stringify({ type: 2, text: "Done.", nested: [{ apiKey: "key-secret" }] })],
      ["bubbleId:c1:b2", JSON.stringify({ type: 1, text: "Read." })],
      ["bubbleId:c1:b3", JSON.stringify({ type: 1, text: "Outside" })],
      ["bubbleId:c10:b9", JSON.stringify({ type: 1, text: "Another" })],
      ["agentKv:x", "key-secret"],
    );
    await using store = createMemoryStore();
    const sources = await importAll(store, path);
    expect(sources.map(({ format, sessionId, records }) => [format, sessionId, records])).toEqual([
      ["cursor", "c1", 3],
      ["cursor", "c2", 0],
    ]);
    expect(await said(store, sources[0])).toEqual(["user: Read.", "assistant: Done."]);
    const records = await recordsOf(store, refOf(sources[0] as ImportSource));
    expect(JSON.stringify(records)).toContain("Outside");
    expect(JSON.stringify([records, await store.load(refOf(sources[0] as ImportSource))])).not.toContain("secret");
    expect((await importAll(store, path, { from: "cursor" })).map(({ state }) => state)).toEqual([
      "unchanged",
      "unchanged",
    ]);
  });
});

const corpus = join(process.env["THROUGHLINE_CORPUS"] ?? "", "foreign");

describe.skipIf(!existsSync(join(corpus, "langgraph")))("a database of the corpus", () => {
  it("of LangGraph has the messages of its newest checkpoint", async () => {
    await using store = createMemoryStore();
    const [source] = await importAll(store, join(corpus, "langgraph/checkpoints.sqlite"));
    expect(source).toMatchObject({ format: "langgraph", records: 6, lost: [], error: null });
    expect(await said(store, source)).toEqual(["user: Weather in Oslo?", "user: Or Bergen?"]);
  });

  it("of the OpenAI Agents SDK has its items but for the broken one", async () => {
    await using store = createMemoryStore();
    const [source] = await importAll(store, join(corpus, "openai-agents/python-session.sqlite"));
    expect(source).toMatchObject({ format: "openai-agents", records: 6, repaired: 1, lost: [], error: null });
    expect(await said(store, source)).toHaveLength(5);
  });

  it("of Cursor, put together of its rows, has every bubble and no key", async () => {
    using folder = fixtureFolder();
    const path = folder.at("state.vscdb");
    const dump = JSON.parse(readFileSync(join(corpus, "cursor/toolpath-bubbles.json"), "utf8")) as {
      readonly data: { readonly composerId: string };
      readonly bubbles: readonly { readonly bubbleId: string }[];
    };
    run(path, cursorTables);
    const { composerId: id } = dump.data;
    const bubbles = dump.bubbles.map((bubble) => [`bubbleId:${id}:${bubble.bubbleId}`, JSON.stringify(bubble)]);
    run(path, addCursor, [`composerData:${id}`, JSON.stringify(dump.data)], ...bubbles);
    await using store = createMemoryStore();
    const [source] = await importAll(store, path);
    expect(source).toMatchObject({ format: "cursor", records: 22, repaired: 0, lost: [], error: null });
    const texts = await said(store, source);
    expect(texts.filter((text) => text.startsWith("toolResult"))).toHaveLength(10);
    expect(texts).toHaveLength(32);
    expect(JSON.stringify(await recordsOf(store, refOf(source as ImportSource)))).not.toMatch(/EncryptionKey/);
  });
});
