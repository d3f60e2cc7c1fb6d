import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openclawFixture, talk } from "../../../packages/transfer/test/database-fixtures.ts";
import { objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import type { Run, RunOptions } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";
import type { Terminal } from "./terminal.ts";

let directory = temporaryDirectory();
let home = "";
beforeEach(() => {
  directory = temporaryDirectory();
  home = join(directory.path, ".throughline");
});
afterEach(() => directory.remove());

const noKeys = { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "", OLLAMA_HOST: "" };
const key = "agent:main:main";

/** One session as OpenClaw keeps it. */
function openclawSession(id = "s1", sessionKey = key, text = "where are the lamps?", agent = "main"): string {
  const folder = join(directory.path, ".openclaw/agents", agent, "sessions");
  mkdirSync(folder, { recursive: true });
  const header = { type: "session", version: 3, id, timestamp: "2026-01-01T00:00:00.000Z", cwd: "/home/ada" };
  const message = {
    type: "message",
    id: `${id}-a`,
    parentId: null,
    timestamp: "2026-01-01T00:00:01.000Z",
    message: { role: "user", content: text },
  };
  writeFileSync(join(folder, `${id}.jsonl`), `${JSON.stringify(header)}\n${JSON.stringify(message)}\n`);
  const index = join(folder, "sessions.json");
  const entries = existsSync(index) ? (JSON.parse(readFileSync(index, "utf8")) as object) : {};
  writeFileSync(index, JSON.stringify({ ...entries, [sessionKey]: { sessionId: id, updatedAt: 1_767_225_601_000 } }));
  return folder;
}

/** A database as GoClaw keeps it. */
function goclawDatabase(path: string, id: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const database = new DatabaseSync(path);
  database.exec(`
    CREATE TABLE sessions (key TEXT PRIMARY KEY, id TEXT UNIQUE, created_at INTEGER, updated_at INTEGER, model TEXT);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_key TEXT, parent_id TEXT, timestamp INTEGER, role TEXT, content TEXT,
      tool_call_id TEXT, tool_name TEXT, tool_input BLOB, tool_result TEXT, tool_is_error BOOLEAN, source TEXT,
      input_tokens INTEGER, output_tokens INTEGER, raw_json TEXT, thinking TEXT);
    INSERT INTO sessions VALUES ('agent:main:${id}', '${id}', 1770000000, 1770000100, 'claude-x');
    INSERT INTO messages VALUES ('m-${id}', 'agent:main:${id}', NULL, 1770000001, 'user', 'hello from ${id}', NULL, NULL, NULL,
      NULL, 0, NULL, 0, 0, NULL, NULL);`);
  database.close();
}

/** An agent's database as OpenClaw keeps it since 2026.8, and no transcript beside it. */
function openclawDatabase(agent: string, sessionKey: string, id: string): string {
  const path = join(directory.path, ".openclaw/agents", agent, "agent/openclaw-agent.sqlite");
  mkdirSync(dirname(path), { recursive: true });
  using fixture = openclawFixture(path);
  fixture.database.prepare("UPDATE schema_meta SET agent_id = ?").run(agent);
  fixture.node(sessionKey, id, { sessionId: id, updatedAt: 1_790_000_000_500 });
  fixture.window(id, sessionKey, 1_790_000_000_000);
  fixture.events(id, talk(id, [`hello from ${id}`, "hi"]));
  return path;
}

function stateOf(folder: string): readonly string[] {
  return readdirSync(folder)
    .toSorted()
    .map((name) => {
      const path = join(folder, name);
      return `${name} ${createHash("sha256").update(readFileSync(path)).digest("hex")} ${statSync(path).mtimeMs}`;
    });
}

function run(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  return runHere(directory.path, args, {
    ...options,
    environment: { ...noKeys, THROUGHLINE_HOME: home, ...options.environment },
  });
}

function chat(args: readonly string[] = []): Terminal {
  const environment = { ...noKeys, HOME: directory.path, THROUGHLINE_HOME: home };
  return runInTerminal(directory.path, ["chat", "--model", "offline", ...args], { environment, columns: 300 });
}

async function sessionKeys(...more: readonly string[]): Promise<unknown[]> {
  const { stdout } = await run(["sessions", "--json", "--quiet", ...more]);
  return objects(stdout).flatMap((session) => (session["kind"] === "session" ? [session["key"]] : []));
}

describe("sessions of another program at the first run", () => {
  it(
    "are noticed and offered on a terminal, and imported only after a yes; a no is remembered",
    { tags: ["slow"] },
    async () => {
      const folder = openclawSession();
      const before = stateOf(folder);
      {
        await using terminal = chat();
        await terminal.waitFor("OpenClaw 1 session");
        await terminal.waitFor("[y/N] ");
        terminal.write("\r");
        await terminal.waitFor("Nothing was imported");
        await terminal.waitForPrompt();
        terminal.write("/quit\r");
        expect(await terminal.exitCode()).toBe(0);
      }
      expect(await sessionKeys()).toEqual([]);
      {
        await using again = chat();
        await again.waitForPrompt();
        expect(again.text()).not.toContain("OpenClaw");
      }
      // Whoever never answered is asked again.
      writeFileSync(join(home, "sync.json"), "{");
      {
        await using interrupted = chat();
        await interrupted.waitFor("[y/N] ");
        interrupted.write("\u0003");
        expect(await interrupted.exitCode()).not.toBe(0);
      }
      expect(await sessionKeys()).toEqual([]);
      await using yes = chat();
      await yes.waitFor("[y/N] ");
      yes.write("y\r");
      await yes.waitFor("Imported 1 session, 2 records");
      // An import is not resumed: the person did not ask for that.
      await yes.waitFor("New session");
      expect(await sessionKeys()).toEqual([key]);
      expect(stateOf(folder)).toEqual(before);
    },
  );

  it("go on in the new store only, and are not imported over what was said since", { tags: ["slow"] }, async () => {
    const folder = openclawSession();
    const before = stateOf(folder);
    const once = ["chat", "--model", "offline", "--once"];
    const environment = { THROUGHLINE_SESSION_INHERIT_ENABLED: "true" };
    const first = await run([...once, "here we go on", "--json"], { environment });
    expect(first.code).toBe(0);
    expect(objects(first.stdout)[0]).toMatchObject({ key, sessionId: "s1" });
    const second = await run([...once, "and on"], { environment });
    expect(second.code).toBe(0);
    expect(stateOf(folder)).toEqual(before);
    const shown = await run(["show", key, "--role", "user", "--json", "--quiet"]);
    const texts = objects(shown.stdout).flatMap(({ record }) =>
      record === undefined ? [] : [(record as { message: { content: unknown } }).message.content],
    );
    expect(texts).toEqual(["where are the lamps?", "here we go on", "and on"]);
  });

  it("are told of in one line where nobody can be asked, and nothing is imported", { tags: ["slow"] }, async () => {
    openclawSession();
    const { code, stderr } = await run(["chat", "--model", "offline", "--once", "hello"]);
    expect(code).toBe(0);
    expect(stderr.split("\n").filter((line) => line.includes("OpenClaw"))).toEqual([
      expect.stringMatching(/OpenClaw 1 session: \d+ B\. `throughline sync` imports them\./),
    ]);
    expect(await sessionKeys()).not.toContain(key);
    const later = await run(["chat", "--model", "offline", "--once", "hello"]);
    expect(later.stderr).not.toContain("OpenClaw");
    expect(existsSync(join(home, "sync.json"))).toBe(false);
  });

  it("are not looked for where the setting says no, and imported without a question where it says yes, under another key if wanted", async () => {
    openclawSession();
    openclawSession("s2", "agent:main:other", "another one");
    const no = await run(["chat", "--model", "offline", "--once", "hello"], {
      environment: { THROUGHLINE_SESSION_INHERIT_ENABLED: "false" },
    });
    expect(no.stderr).not.toContain("OpenClaw");
    const config = {
      session: { inherit: { enabled: true, format: "jsonl", readKey: key, writeKey: "agent:main:continued" } },
    };
    writeFileSync(join(home, "config.json"), JSON.stringify(config));
    const yes = await run(["chat", "--model", "offline", "--key", "agent:main:continued", "--once", "hello"]);
    expect(yes).toMatchObject({ code: 0 });
    expect(yes.stderr).toContain("Imported 1 session");
    expect(await sessionKeys()).toContain("agent:main:continued");
    expect(await sessionKeys()).not.toContain(key);
    expect(await sessionKeys()).not.toContain("agent:main:other");
  });

  it("are found in OpenClaw's and GoClaw's databases too, below the user's directory", async () => {
    goclawDatabase(join(directory.path, ".openclaw/sessions.db"), "one");
    goclawDatabase(join(directory.path, ".openclaw/goclaw/sessions.db"), "two");
    const { stderr } = await run(["chat", "--model", "offline", "--once", "hello"], {
      environment: { THROUGHLINE_SESSION_INHERIT_ENABLED: "true" },
    });
    expect(stderr).toContain("Imported 2 sessions, 4 records");
    expect(existsSync(join(home, "sessions.db"))).toBe(true);
    expect(await sessionKeys()).toEqual(expect.arrayContaining(["agent:main:one", "agent:main:two"]));
    for (const name of ["sessions.db", "goclaw/sessions.db"]) {
      const dry = await run(["import", join(directory.path, ".openclaw", name), "--dry-run", "--json"]);
      expect(objects(dry.stdout)[0]).toMatchObject({ sources: [{ format: "goclaw", state: "unchanged" }] });
    }
  });
});

describe("the state directory of another program", () => {
  it(
    "is seen where it holds nothing but an agent's database, and asked for on a terminal",
    { tags: ["slow"] },
    async () => {
      openclawDatabase("main", key, "s1");
      const told = await run(["chat", "--model", "offline", "--key", "mine", "--once", "hello"], {
        environment: { THROUGHLINE_HOME: join(directory.path, "other") },
      });
      expect(told.stderr).toMatch(/OpenClaw 1 database: .+\. `throughline sync` imports them\./);
      await using terminal = chat();
      await terminal.waitFor("[y/N] ");
      expect(terminal.text()).toContain("OpenClaw 1 database");
      expect(await sessionKeys()).toEqual([]);
      terminal.write("y\r");
      await terminal.waitFor("Imported 1 session, 3 records");
      await terminal.waitFor("New session");
      expect(await sessionKeys()).toEqual([key]);
    },
  );

  it("is taken over whole: every agent, its database and its transcripts, and what comes later", async () => {
    openclawDatabase("main", key, "s1");
    openclawSession("s2", "agent:work:main", "of work", "work");
    openclawDatabase("ops", "agent:ops:main", "s3");
    goclawDatabase(join(directory.path, ".openclaw/goclaw/sessions.db"), "two");
    const environment = { THROUGHLINE_SESSION_INHERIT_ENABLED: "true" };
    const once = ["chat", "--model", "offline", "--key", "mine", "--once"];
    const first = await run([...once, "hello"], { environment });
    expect(first.stderr).toContain("Imported 4 sessions");
    expect(await sessionKeys("--all-agents")).toEqual(
      expect.arrayContaining([key, "agent:work:main", "agent:ops:main", "agent:main:two"]),
    );
    expect((await run([...once, "again"], { environment })).stderr).not.toContain("Imported");
    // An agent that was not there before, and one whose folder has more.
    openclawDatabase("later", "agent:later:main", "s5");
    openclawSession("s6", "agent:work:more", "more", "work");
    const third = await run([...once, "and again"], { environment });
    expect(third.stderr).toContain("Imported 2 sessions");
    expect(await sessionKeys("--all-agents")).toEqual(expect.arrayContaining(["agent:later:main", "agent:work:more"]));
  });

  it("is what a place means that somebody names, and so is one agent of it", async () => {
    const path = openclawDatabase("main", key, "s1");
    openclawSession("s2", "agent:work:main", "of work", "work");
    const inherit = async (source: string, name: string): Promise<readonly unknown[]> => {
      home = join(directory.path, name);
      mkdirSync(home);
      writeFileSync(join(home, "config.json"), JSON.stringify({ session: { inherit: { enabled: true, source } } }));
      await run(["chat", "--model", "offline", "--key", "mine", "--once", "hello"]);
      return (await sessionKeys("--all-agents")).filter((each) => each !== "mine").toSorted();
    };
    const state = join(directory.path, ".openclaw");
    expect(await inherit(state, "one")).toEqual([key, "agent:work:main"]);
    expect(await inherit(join(state, "agents/work"), "two")).toEqual(["agent:work:main"]);
    // The folder that the documents name, of an agent whose sessions lie in its database by now.
    expect(await inherit(join(state, "agents/main/sessions"), "three")).toEqual([key]);
    expect(await inherit(path, "four")).toEqual([key]);
  });
});

describe("a store in the folder that it should inherit", () => {
  const inherits = { ...noKeys, THROUGHLINE_SESSION_INHERIT_ENABLED: "true" };
  const once = ["chat", "--model", "offline", "--key", "mine", "--once", "hello"];

  it("imports the sessions of a folder that is not the store's own", { tags: ["slow"] }, async () => {
    openclawSession();
    const store = `jsonl:${directory.path}`;
    const { stderr } = await run([...once, "--store", store], { environment: inherits });
    expect(stderr).toContain("Imported 1 session");
    const { stdout } = await run(["show", key, "--json", "--store", store]);
    expect(stdout).toContain("where are the lamps?");
    expect((await run([...once, "--store", store], { environment: inherits })).stderr).not.toContain("Imported");
  });

  it("prints once that its own sessions are not inherited, and imports a database among them", async () => {
    const folder = openclawSession();
    openclawDatabase("ops", "agent:ops:main", "s2");
    const store = `jsonl:${join(directory.path, ".openclaw")}`;
    const first = await run([...once, "--store", store], { environment: inherits });
    expect(first.stderr).toContain(
      `Nothing is inherited from ${folder}: the store ${store} holds these sessions already.`,
    );
    expect(first.stderr).toContain("Imported 1 session");
    const { stdout } = await run(["sessions", "--all-agents", "--json", "--store", store]);
    expect(objects(stdout).flatMap(({ key: each }) => each ?? [])).toEqual(
      expect.arrayContaining([key, "mine", "agent:ops:main"]),
    );
    expect((await run([...once, "--store", store], { environment: inherits })).stderr).not.toContain("inherited");
  });
});

describe("chat without a key", () => {
  it("resumes the newest session of its folder, and no channel or job without its key", async () => {
    const store = `sqlite:${join(home, "sessions.db")}`;
    const once = ["chat", "--model", "offline", "--once", "hello", "--json"];
    const channel = "agent:main:slack:channel:c1";
    mkdirSync(home);
    const entry = { cwd: directory.path };
    await seed(directory.path, [{ key: channel, entry, drafts: [user("deploy at five")] }], store);
    const first = objects((await run(once)).stdout)[0]?.["key"];
    expect(first).toMatch(/^agent:main:cli:direct:throughline-cli-/);
    await seed(directory.path, [{ key: "agent:main:cron:daily", entry, drafts: [user("the report")] }], store);
    expect(objects((await run(once)).stdout)[0]).toMatchObject({ key: first });
    const third = await run([...once, "--key", channel]);
    expect(objects(third.stdout)[0]).toMatchObject({ key: channel });
  });
});

describe("the store of the command line", () => {
  it("is SQLite in the home, unless something else is said, and the documentation says so", async () => {
    await run(["append", "notes"], { stdin: '{"type":"note"}\n' });
    expect(readFileSync(join(home, "sessions.db")).subarray(0, 15).toString()).toBe("SQLite format 3");
    const reference = readFileSync(join(import.meta.dirname, "../../../docs/cli.md"), "utf8");
    expect(reference).toContain("Default: `$THROUGHLINE_STORE`, else `sqlite:` with `sessions.db` in the home");
    const config = join(home, "config.json");
    writeFileSync(config, JSON.stringify({ session: { store: "jsonl", storePath: join(directory.path, "tree") } }));
    await run(["append", "notes"], { stdin: '{"type":"note"}\n' });
    expect(existsSync(join(directory.path, "tree/agents/main/sessions"))).toBe(true);
    writeFileSync(config, JSON.stringify({ session: { store: "sqlite", storePath: join(directory.path, "my.db") } }));
    await run(["append", "notes"], { stdin: '{"type":"note"}\n' });
    expect(existsSync(join(directory.path, "my.db"))).toBe(true);
  });
});

describe("the home and the names of the environment", () => {
  it("are ~/.throughline, THROUGHLINE_ and, for the time of the cache, OpenClaw's name too [C44]", async () => {
    const setting = async (key: string, environment: Record<string, string>): Promise<unknown> => {
      const { stdout } = await runHere(directory.path, ["config", "--json"], { environment });
      return objects(stdout).find((row) => row["key"] === key);
    };
    const unset = { HOME: directory.path, THROUGHLINE_HOME: "" };
    expect(await setting("home", unset)).toMatchObject({ value: join(directory.path, ".throughline") });
    const moved = { THROUGHLINE_HOME: join(directory.path, "elsewhere") };
    expect(await setting("home", moved)).toMatchObject({ value: join(directory.path, "elsewhere") });
    const theirs = { OPENCLAW_SESSION_CACHE_TTL_MS: "7" };
    expect(await setting("session.cacheTtlMs", theirs)).toMatchObject({ value: 7 });
    const both = { ...theirs, THROUGHLINE_SESSION_CACHE_TTL_MS: "9" };
    expect(await setting("session.cacheTtlMs", both)).toMatchObject({ value: 9 });
  });
});

describe("the setting session.inherit.enabled in commands other than chat", () => {
  const inherits = { THROUGHLINE_SESSION_INHERIT_ENABLED: "true" };

  it.each([
    ["sessions", []],
    ["show", [key]],
    ["search", ["lamps"]],
    ["append", [key]],
  ])("has %s import what is new before it looks, and never twice", async (command, args) => {
    const folder = openclawSession();
    const before = stateOf(folder);
    const options = { environment: inherits, stdin: command === "append" ? JSON.stringify(user("more")) : "" };
    const first = await run([command, ...args, "--json"], options);
    expect({ code: first.code, stderr: first.stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining("Imported 1 session, 2 records") as string,
    });
    expect(await sessionKeys()).toEqual([key]);
    expect((await run([command, ...args, "--json"], options)).stderr).not.toContain("Imported");
    expect(stateOf(folder)).toEqual(before);
  });

  it("leaves the store alone in commands that must not write, in a plan, and where nobody set it", async () => {
    openclawSession();
    for (const args of [
      ["verify"],
      ["doctor"],
      ["stats"],
      ["compact", key, "--dry-run", "--model", "offline"],
      ["config"],
    ]) {
      const isPlain = args[0] === "stats";
      const { stderr } = await run(args, isPlain ? {} : { environment: inherits });
      expect(stderr, args.join(" ")).not.toContain("Imported");
    }
    expect((await run(["sessions"])).stderr).not.toContain("Imported");
    expect(existsSync(join(home, "sync.json"))).toBe(false);
  });

  it("prints what could not be imported, and the command works all the same", async () => {
    const database = openclawDatabase("main", key, "s1");
    writeFileSync(database, "this is no database, and it is long enough to be read as one".repeat(40));
    await seed(home, [{ key, drafts: [user("mine")] }]);
    const { code, stderr, stdout } = await run(["sessions", "--json"], { environment: inherits });
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(database) as string });
    expect(objects(stdout).flatMap((row) => (row["kind"] === "session" ? [row["key"]] : []))).toContain(key);
  });
});
