import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";
import type { Run } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";

const key = "agent:main:main";
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

/** A database as GoClaw keeps it, whose compaction had no model to write its summary. */
function goclawDatabase(path: string): void {
  const database = new DatabaseSync(path);
  database.exec(`
    CREATE TABLE sessions (key TEXT PRIMARY KEY, id TEXT UNIQUE, created_at INTEGER, updated_at INTEGER, model TEXT);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_key TEXT, parent_id TEXT, timestamp INTEGER, role TEXT, content TEXT,
      tool_call_id TEXT, tool_name TEXT, tool_input BLOB, tool_result TEXT, tool_is_error BOOLEAN, source TEXT,
      input_tokens INTEGER, output_tokens INTEGER, raw_json TEXT, thinking TEXT);
    CREATE TABLE compactions (id TEXT PRIMARY KEY, session_key TEXT, timestamp INTEGER, summary TEXT,
      first_kept_entry_id TEXT, tokens_before INTEGER, needs_summary_retry BOOLEAN);
    INSERT INTO sessions VALUES ('${key}', 's1', 1770000000, 1770000900, 'claude-opus-5');`);
  const insert = database.prepare(
    "INSERT INTO messages (id, session_key, timestamp, role, content, tool_is_error, input_tokens, output_tokens) VALUES (?, ?, ?, ?, ?, 0, 0, 0)",
  );
  for (let turn = 0; turn < 10; turn++) {
    insert.run(
      `u${turn}`,
      key,
      1_770_000_000 + turn * 10,
      "user",
      `Question ${turn}: ${"count the lamps of the quay. ".repeat(10)}`,
    );
    insert.run(
      `a${turn}`,
      key,
      1_770_000_005 + turn * 10,
      "assistant",
      `Answer ${turn}: ${"they are counted. ".repeat(10)}`,
    );
  }
  database
    .prepare("INSERT INTO compactions VALUES (?, ?, ?, ?, ?, ?, 1)")
    .run("c1", key, 1_770_000_096, "[Summary unavailable]", "u8", 180_000);
  database.close();
}

const summary = `Topics:
- the lamps of the quay
Key decisions:
- lamp four is replaced in March
Current state:
- all lamps are counted
Open items:
- none`;

describe("a compaction of GoClaw that waits for its summary", () => {
  it("is imported, made again beside the next chat, and reaches the model", async () => {
    const path = join(directory.path, "goclaw.db");
    goclawDatabase(path);
    const isSummary = (body: unknown): boolean =>
      JSON.stringify((body as { system?: unknown }).system).includes("summaries");
    await using provider = createProviderSimulator({ fallback: ({ body }) => (isSummary(body) ? summary : "Noted.") });
    await provider.start();
    const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url, OPENAI_API_KEY: "" };
    const run = async (...args: readonly string[]): Promise<Run> => {
      const done = await runHere(directory.path, args, { environment });
      expect(done, done.stderr).toMatchObject({ code: 0 });
      return done;
    };
    await run("import", path);
    await using terminal = runInTerminal(directory.path, ["chat", "--key", key, "--model", "anthropic/claude-opus-5"], {
      environment: { ...environment, HOME: directory.path, THROUGHLINE_HOME: directory.path },
      columns: 200,
    });
    // The import stays as it is: its fork, which the first message makes, gets the summary.
    await terminal.waitFor("Continuing in a fork");
    terminal.write("hello\r");
    await terminal.waitFor("A model wrote a better summary; it replaces the first one.", 20_000);
    const asked = provider.requests.filter(({ body }) => isSummary(body)).map(({ body }) => JSON.stringify(body));
    expect(asked).toHaveLength(1);
    // What GoClaw took out, word for word, and nothing of what it kept.
    for (const part of ["Question 0:", "Answer 7:"]) expect(asked[0]).toContain(part);
    expect(asked[0]).not.toContain("Question 8:");
    terminal.write("go on\r");
    // The answer to "hello" may be printed behind the note, and says the same.
    const lastBody = (): string => JSON.stringify(provider.requests.at(-1)?.body);
    await expect.poll(lastBody).toContain("go on");
    expect(lastBody()).toContain("lamp four is replaced in March");
    expect(provider.requests.filter(({ body }) => isSummary(body))).toHaveLength(1);
    const { stdout: rows } = await run("sessions", "--program", "own", "--json", "--quiet");
    const fork = String(objects(rows)[0]?.["key"]);
    const { stdout } = await run("show", fork, "--all-branches", "--json", "--quiet");
    const messages = objects(stdout).filter(({ type }) => type === "message");
    expect(messages.length).toBeGreaterThanOrEqual(20);
  });
});
