import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openclawFixture } from "../../../packages/transfer/test/database-fixtures.ts";
import { objects, runHere, seed, temporaryDirectory, user, type Run } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

/** The state directory, which is named as the home; the database lies where a store would. */
const state = (): string => join(directory.path, ".openclaw");
const path = (): string => join(state(), "sessions.db");

function here(...args: readonly string[]): Promise<Run> {
  const environment = { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "", OLLAMA_HOST: "" };
  return runHere(directory.path, args, {
    environment,
    stdin: '{"type":"message","message":{"role":"user","content":"x"}}\n',
  });
}

/** The tables as two documents show them, with one conversation. */
function goclawDatabase(file: string): void {
  using database = new DatabaseSync(file);
  database.exec(`
    CREATE TABLE sessions (key TEXT PRIMARY KEY, created_at INTEGER, updated_at INTEGER, metadata TEXT);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_key TEXT, parent_id TEXT, timestamp INTEGER, role TEXT, content TEXT,
      tool_name TEXT, tool_input TEXT, tool_result TEXT, tool_is_error BOOLEAN);
    INSERT INTO sessions VALUES ('agent:main:main', 1770000000, 1770000100, NULL);
    INSERT INTO messages VALUES ('m1', 'agent:main:main', NULL, 1770000001, 'user', 'Paint the quay.', NULL, NULL, NULL, NULL);
    INSERT INTO messages VALUES ('m2', 'agent:main:main', 'm1', 1770000002, 'assistant', 'Done.', NULL, NULL, NULL, NULL);`);
}

function goclawRecords(file: string): void {
  using database = new DatabaseSync(file);
  database.exec(`
    PRAGMA journal_mode = WAL;
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_key TEXT, parent_id TEXT, type TEXT, timestamp INTEGER, data TEXT);
    INSERT INTO messages VALUES ('m1', 'agent:main:main', NULL, 'message', 1770000001,
      '{"type":"message","message":{"role":"user","content":"Paint the quay."}}');
    INSERT INTO messages VALUES ('m2', 'agent:main:main', 'm1', 'message', 1770000002,
      '{"type":"message","message":{"role":"assistant","content":"Done."}}');`);
}

function openclawDatabase(file: string): void {
  using fixture = openclawFixture(file);
  const key = "agent:ops:main";
  fixture.node(key, "s1", { sessionId: "s1", updatedAt: 1_770_000_000_000 });
  fixture.window("s1", key, 1_770_000_000_000);
  const message = (id: string, parentId: string | null, role: string, content: string): string =>
    JSON.stringify({
      type: "message",
      id,
      parentId,
      timestamp: "2026-02-02T00:00:00.000Z",
      message: { role, content },
    });
  fixture.events("s1", [message("a", null, "user", "Paint the quay."), message("b", "a", "assistant", "Done.")]);
}

function unrelatedDatabase(file: string): void {
  using database = new DatabaseSync(file);
  database.exec(
    "PRAGMA user_version = 3; CREATE TABLE records (a); CREATE TABLE sessions (b); INSERT INTO sessions VALUES (1)",
  );
}

const commands: readonly (readonly string[])[] = [
  ["sessions"],
  ["chat", "--once", "hi", "--model", "offline"],
  ["append", "agent:main:main"],
  ["show", "agent:main:main"],
  ["search", "quay"],
  ["stats"],
  ["verify"],
  ["doctor"],
  ["doctor", "--repair"],
  ["reindex"],
  ["prune", "--older-than", "1d", "--yes"],
  ["backup", "copy.db"],
];

/** Every file beside the database, with what is in it. */
function filesBeside(): Readonly<Record<string, string>> {
  const names = readdirSync(state(), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    names.map(({ parentPath, name }) => {
      const file = join(parentPath, name);
      return [file, createHash("sha256").update(readFileSync(file)).digest("hex")];
    }),
  );
}

describe("a database of another program in the place of the store", () => {
  const known = [
    ["GoClaw's", "is a SQLite database of GoClaw", "goclaw", "main", goclawDatabase],
    ["GoClaw's with records, and a log", "is a SQLite database of GoClaw", "goclaw", "main", goclawRecords],
    ["an agent's of OpenClaw", "is a SQLite database of OpenClaw", "openclaw", "ops", openclawDatabase],
  ] as const;

  it.each(known)(
    "%s is named, is not changed by any command, and is imported by the command that is printed",
    async (_name, text, program, agent, make) => {
      mkdirSync(state());
      make(path());
      const before = filesBeside();
      let printed = "";
      for (const command of commands) {
        const run = await here(...command, "--home", state(), "--json", "--quiet");
        const [error] = objects(run.stderr);
        expect([command[0], run.code, run.stdout, error?.["code"]]).toEqual([command[0], 1, "", "STORE_FOREIGN"]);
        expect(error).toMatchObject({ outcome: "not-applied", details: { path: path(), program } });
        expect(String(error?.["message"])).toBe(`${JSON.stringify(path())} ${text}, not a store. It was not changed.`);
        printed = /`throughline ([^`]*)`/.exec(String(error?.["remedy"]))?.[1] ?? "";
      }
      expect(filesBeside()).toEqual(before);
      const imported = await here(...printed.split(" "), "--home", state(), "--json");
      expect(objects(imported.stdout)[0]).toMatchObject({
        sources: [{ key: `agent:${agent}:main`, state: "imported", lost: [] }],
      });
      const store = /--store (\S+)/.exec(printed)?.[1] ?? "";
      expect((await here("show", `agent:${agent}:main`, "--agent", agent, "--store", store)).stdout).toContain(
        "Paint the quay.",
      );
      const { [path()]: own } = before;
      expect(filesBeside()[path()]).toBe(own);
      // The next command still says so, and names the store that is there by now.
      const again = await here("sessions", "--home", state(), "--json");
      expect(String(objects(again.stderr)[0]?.["remedy"])).toContain(`--store ${store}`);
    },
  );

  it("of a program that is not known is left alone, and the command that is printed starts a store beside it", async () => {
    mkdirSync(state());
    unrelatedDatabase(path());
    const before = filesBeside();
    for (const command of commands) {
      const run = await here(...command, "--home", state(), "--json", "--quiet");
      expect([command[0], run.code, objects(run.stderr)[0]?.["code"]]).toEqual([command[0], 1, "STORE_FOREIGN"]);
    }
    const run = await here("sessions", "--home", state());
    expect(run.stderr).toContain("is a SQLite database of another program, not a store. It was not changed.");
    const printed = /`throughline (chat [^`]*)`/.exec(run.stderr)?.[1] ?? "";
    expect(filesBeside()).toEqual(before);
    const chat = await here(...printed.split(" "), "--once", "hi", "--model", "offline");
    expect(chat.code).toBe(0);
    expect(filesBeside()).toMatchObject(before);
  });

  it("is no target of a copy or a restore, and an own backup beside it does not take its place", async () => {
    mkdirSync(state());
    goclawDatabase(path());
    await seed(directory.path, [{ key: "mine", drafts: [user("mine")] }]);
    expect((await here("backup", "own.db")).code).toBe(0);
    copyFileSync(join(directory.path, "own.db"), join(state(), "sessions.db.x.backup"));
    const before = filesBeside();
    const target = `sqlite:${path()}`;
    for (const command of [
      ["copy", "--all", "--to-store", target],
      ["copy", "mine", "--to-store", target],
      ["restore-backup", "own.db", "--yes", "--store", target],
      ["sessions", "--store", target],
    ]) {
      const run = await here(...command, "--json", "--quiet");
      expect([command, run.code, objects(run.stderr)[0]?.["code"]]).toEqual([command, 1, "STORE_FOREIGN"]);
    }
    // And no backup of ours.
    const restored = await here(
      "restore-backup",
      path(),
      "--yes",
      "--store",
      `sqlite:${join(directory.path, "new/x.db")}`,
      "--json",
    );
    expect(objects(restored.stderr)[0]).toMatchObject({ code: "STORE_FOREIGN", details: { program: "goclaw" } });
    expect(filesBeside()).toEqual(before);
  });
});
