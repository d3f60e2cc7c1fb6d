import { statSync, utimesSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { fixtureFolder, importAll, jsonLines, recordsOf, refOf } from "./fixture-folder.ts";

const at = "2026-06-30T10:00:00.000Z";
const secret = "sk-secret-0123456789";

interface ProgramFolder {
  /** What is named at the import. */
  readonly root: string;
  /** The session, and its lines; null for a database that the test makes. */
  readonly session: string;
  readonly lines: readonly object[] | null;
  /** Files beside it that hold keys and tokens, or what a person configured. */
  readonly secrets: readonly string[];
}

const programs: Readonly<Record<string, ProgramFolder>> = {
  "claude-code": {
    root: ".claude",
    session: ".claude/projects/-w/5e551011-0000-4000-8000-000000000001.jsonl",
    lines: [
      {
        type: "user",
        uuid: "u1",
        parentUuid: null,
        sessionId: "s1",
        timestamp: at,
        message: { role: "user", content: "Hi" },
      },
    ],
    secrets: [
      ".claude/.credentials.json",
      ".claude/settings.json",
      ".claude/projects/-w/auth.json",
      ".claude/projects/.env",
    ],
  },
  codex: {
    root: ".codex",
    session: ".codex/sessions/2026/05/07/rollout-2026-05-07T18-27-42-019e03b2-11a2-7320-9098-5d831813e66c.jsonl",
    lines: [
      { timestamp: at, type: "session_meta", payload: { id: "019e03b2-11a2-7320-9098-5d831813e66c", cwd: "/w" } },
    ],
    secrets: [".codex/auth.json", ".codex/config.toml", ".codex/sessions/auth.json", ".codex/state_5.sqlite"],
  },
  gemini: {
    root: ".gemini",
    session: ".gemini/tmp/project/chats/session-2026-05-07T18-00-9534b902.jsonl",
    lines: [{ sessionId: "g1", projectHash: "743e", startTime: at, lastUpdated: at, kind: "main" }],
    secrets: [
      ".gemini/oauth_creds.json",
      ".gemini/settings.json",
      ".gemini/.env",
      ".gemini/tmp/project/oauth_creds.json",
    ],
  },
  "qwen-code": {
    root: ".qwen",
    session: ".qwen/projects/-w/chats/54519cf2-0636-4c90-924d-6a77bc43ad98.jsonl",
    lines: [
      {
        uuid: "u1",
        parentUuid: null,
        sessionId: "54519cf2-0636-4c90-924d-6a77bc43ad98",
        timestamp: at,
        type: "user",
        message: { role: "user", parts: [{ text: "Hi" }] },
      },
    ],
    secrets: [
      ".qwen/oauth_creds.json",
      ".qwen/settings.json",
      ".qwen/.env",
      ".qwen/projects/-w/chats/54519cf2-0636-4c90-924d-6a77bc43ad98.runtime.json",
    ],
  },
  "kimi-cli": {
    root: ".kimi",
    session: ".kimi/sessions/0123456789abcdef0123456789abcdef/s1/wire.jsonl",
    lines: [
      { type: "metadata", protocol_version: "1.9" },
      { timestamp: 1_790_000_000, message: { type: "TurnBegin", payload: { user_input: "Hi" } } },
    ],
    secrets: [
      ".kimi/config.toml",
      ".kimi/config.json",
      ".kimi/mcp.json",
      ".kimi/credentials/kimi-code.json",
      ".kimi/sessions/0123456789abcdef0123456789abcdef/s1/context.jsonl",
    ],
  },
  droid: {
    root: ".factory",
    session: ".factory/sessions/-w/54519cf2-0636-4c90-924d-6a77bc43ad98.jsonl",
    lines: [
      { type: "session_start", id: "54519cf2-0636-4c90-924d-6a77bc43ad98", title: "T", owner: "u", cwd: "/w" },
      { type: "message", id: "m1", timestamp: at, message: { role: "user", content: [{ type: "text", text: "Hi" }] } },
    ],
    secrets: [
      ".factory/auth.json",
      ".factory/config.json",
      ".factory/settings.json",
      ".factory/sessions/-w/54519cf2-0636-4c90-924d-6a77bc43ad98.settings.json",
    ],
  },
  "copilot-cli": {
    root: ".copilot",
    session: ".copilot/session-state/s1/events.jsonl",
    lines: [
      {
        type: "session.start",
        id: "e1",
        parentId: null,
        timestamp: at,
        data: { sessionId: "s1", copilotVersion: "1" },
      },
    ],
    secrets: [".copilot/config.json", ".copilot/session-state/s1/workspace.yaml", ".copilot/session-store.db"],
  },
  goose: {
    root: "share",
    session: "share/goose/sessions/20260101.jsonl",
    lines: [
      { working_dir: "/w", description: "T", message_count: 0 },
      { role: "user", created: 1, content: [{ type: "text", text: "Hi" }] },
    ],
    secrets: ["share/goose/secrets.yaml", "share/goose/config.yaml", "share/goose/sessions/secrets.json"],
  },
  opencode: {
    root: "share",
    session: "share/opencode/opencode.db",
    lines: null,
    secrets: ["share/opencode/auth.json", "share/opencode/mcp-auth.json"],
  },
  cline: {
    root: "globalStorage",
    session: "globalStorage/saoudrizwan.claude-dev/tasks/1/api_conversation_history.json",
    lines: [[{ role: "user", content: "Hi", ts: 1 }]],
    secrets: [
      "globalStorage/saoudrizwan.claude-dev/secrets.json",
      "globalStorage/saoudrizwan.claude-dev/tasks/1/ui_messages.json",
      "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
      "globalStorage/state.vscdb",
    ],
  },
};

describe("the folder of a program", () => {
  it.each(Object.keys(programs))("gives its session, and no file with secrets is opened: %s", async (name) => {
    const program = programs[name];
    if (program === undefined) throw new Error(name);
    using folder = fixtureFolder(
      Object.fromEntries(program.secrets.map((file) => [file, JSON.stringify({ token: secret })])),
    );
    const path = folder.write(program.session, program.lines === null ? "" : jsonLines(...program.lines).trimEnd());
    if (program.lines === null) {
      const database = new DatabaseSync(path);
      database.exec(`
        CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT);
        CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
        CREATE TABLE part (id TEXT, message_id TEXT, data TEXT);
        CREATE TABLE account (id TEXT, access_token TEXT);
        INSERT INTO account VALUES ('a', '${secret}');
        INSERT INTO session VALUES ('ses_1', NULL, '/w', 'T');
        INSERT INTO message VALUES ('m', 'ses_1', 1, '{"role":"user"}');
        INSERT INTO part VALUES ('p', 'm', '{"type":"text","text":"Hi"}');`);
      database.close();
    }
    const longAgo = new Date(1000);
    for (const file of [path, ...program.secrets.map((one) => folder.at(one))]) utimesSync(file, longAgo, longAgo);
    await using store = createMemoryStore();
    const sources = await importAll(store, folder.at(program.root));
    expect(sources).toMatchObject([{ format: name, state: "imported", lost: [], error: null }]);
    const kept = await Promise.all(
      sources.map(async (source) => [await recordsOf(store, refOf(source)), await store.load(refOf(source))]),
    );
    expect(JSON.stringify(kept)).not.toContain(secret);
    // Where the file system keeps the time of the last reading, the session shows that it was read.
    const readAt = (file: string): number => statSync(file).atimeMs;
    if (readAt(path) > 1000) expect(program.secrets.filter((file) => readAt(folder.at(file)) !== 1000)).toEqual([]);
  });
});
