import { DatabaseSync } from "node:sqlite";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { fixtureFolder, importAll } from "./fixture-folder.ts";

async function findingsOf(sql: string): Promise<readonly (readonly [code: string, message: string])[]> {
  using folder = fixtureFolder();
  const path = folder.at("sessions.db");
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
  await using store = createMemoryStore();
  const [source] = await importAll(store, path);
  expect(source).toMatchObject({ state: "imported", error: null });
  return source?.findings.map(({ code, message }) => [code, message] as const) ?? [];
}

const checkpoint = JSON.stringify({ v: 4, id: "2", ts: "2026-11-23T14:48:20.217Z", channel_values: { messages: [] } });
const graph = `
  CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB);
  CREATE TABLE writes (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT, idx INTEGER, channel TEXT, type TEXT, value BLOB);
  INSERT INTO checkpoints VALUES ('t1', '', '1', NULL, 'json', '${checkpoint}', '{}'), ('t1', '', '2', '1', 'json', '${checkpoint}', '{}');
  INSERT INTO writes VALUES ('t1', '', '1', 'a', 0, 'messages', 'json', '[]'), ('t2', '', '2', 'a', 0, 'messages', 'json', '[]');`;
const agents = `
  CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY);
  CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT);
  CREATE TABLE message_structure (id INTEGER PRIMARY KEY, session_id TEXT, branch_id TEXT);
  CREATE TABLE turn_usage (session_id TEXT, branch_id TEXT, total_tokens INTEGER);
  INSERT INTO agent_messages VALUES (1, 's1', '{"role":"user","content":"Hi"}');
  INSERT INTO message_structure VALUES (1, 's1', 'main'), (2, 's2', 'other');`;

describe("a table that is not read", () => {
  it("is reported where writes of LangGraph wait behind the newest checkpoint", async () => {
    expect(await findingsOf(graph)).toEqual([]);
    const waiting = `INSERT INTO writes VALUES ('t1', '', '2', 'a', -3, '__interrupt__', 'json', '[]'), ('t1', '', '2', 'a', 0, 'messages', 'json', '[]');`;
    expect(await findingsOf(graph + waiting)).toEqual([
      ["SOURCE_UNREAD", "Pending writes of the newest checkpoint are not read (__interrupt__: 1, messages: 1)."],
    ]);
  });

  it("is reported where a session of the OpenAI Agents SDK has branches or usage", async () => {
    expect(await findingsOf(agents)).toEqual([]);
    const more = `INSERT INTO message_structure VALUES (3, 's1', 'branch'); INSERT INTO turn_usage VALUES ('s1', 'main', 5);`;
    expect(await findingsOf(agents + more)).toEqual([
      ["SOURCE_UNREAD", "2 branches of the session are read as one, in the order of their rows."],
      ["SOURCE_UNREAD", "Rows of usage are not read: 1 (table turn_usage)."],
    ]);
  });
});
