import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createProviderSimulator } from "@throughline/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { startPostgres, type PostgresServer } from "../../../packages/store-postgres/test/postgres-server.ts";
import { withClient } from "../../../packages/store-postgres/test/store-under-test.ts";
import { assistant, objects, runChild, runHere, seed, temporaryDirectory, user } from "./harness.ts";

const started = await startPostgres();
const isHere = !("unavailable" in started);
afterAll(async () => {
  if (isHere) await started.stop();
});

const key = "agent:main:cli:direct:work";
const model = "anthropic/claude-opus-5";
const noKeys = { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "", OLLAMA_HOST: "" };
const summary = `Topics:
- quays
Key decisions:
- no red paint
Current state:
- quays are looked after
Open items:
- none`;

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

type Row = Readonly<Record<string, unknown>>;

/** A store by the name of its kind: what the command line calls it, and how a person queries it. */
const stores: readonly (readonly [string, () => { readonly url: string; rows(sql: string): Promise<Row[]> }])[] = [
  [
    "SQLite",
    () => {
      const path = join(directory.path, "sessions.db");
      return {
        url: `sqlite:${path}`,
        async rows(sql) {
          using database = new DatabaseSync(path, { readOnly: true });
          return database.prepare(sql).all();
        },
      };
    },
  ],
  [
    "PostgreSQL",
    () => {
      const { url } = started as PostgresServer;
      return {
        url,
        rows: (sql) =>
          withClient(url, async (client) => {
            await client.query("SET search_path = throughline");
            return (await client.query<Row>(sql)).rows;
          }),
      };
    },
  ],
];

/** Two rows of GoClaw's summaries, in the columns of its own tables. */
function goclawDatabase(path: string): void {
  using database = new DatabaseSync(path);
  database.exec(`
    CREATE TABLE sessions (key TEXT PRIMARY KEY, created_at INTEGER, updated_at INTEGER, metadata TEXT);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_key TEXT, parent_id TEXT, timestamp INTEGER, role TEXT, content TEXT,
      tool_name TEXT, tool_input TEXT, tool_result TEXT, tool_is_error BOOLEAN);
    CREATE TABLE checkpoints (id TEXT PRIMARY KEY, session_key TEXT, timestamp INTEGER, summary TEXT,
      tokens_at_checkpoint INTEGER, message_count_at_checkpoint INTEGER, topics TEXT, key_decisions TEXT, open_questions TEXT,
      generated_by TEXT, covers_up_to TEXT);
    CREATE TABLE compactions (id TEXT PRIMARY KEY, session_key TEXT, timestamp INTEGER, summary TEXT,
      first_kept_entry_id TEXT, tokens_before INTEGER, needs_summary_retry BOOLEAN);
    INSERT INTO sessions VALUES ('agent:main:old', 1770000000, 1770000100, NULL);
    INSERT INTO messages VALUES ('m1', 'agent:main:old', NULL, 1770000001, 'user', 'Paint the quay.', NULL, NULL, NULL, NULL);
    INSERT INTO messages VALUES ('m2', 'agent:main:old', 'm1', 1770000002, 'assistant', 'Done.', NULL, NULL, NULL, NULL);
    INSERT INTO checkpoints VALUES ('c1', 'agent:main:old', 1770000003, 'Painted.', 500, 2, '["quay"]', '[]', '[]', 'ollama', 'm2');
    INSERT INTO compactions VALUES ('k1', 'agent:main:old', 1770000004, 'A quay.', 'm2', 900, 1);
    INSERT INTO compactions VALUES ('k2', 'agent:main:old', 1770000005, 'The quay.', 'm2', 800, 0);`);
}

describe.each(stores)("the views of summaries in %s", (name, open) => {
  const known = name === "SQLite" || isHere;

  it.skipIf(!known)(
    "show what the compactor, the checkpointer and an import have written [SQL-03, SQL-15, C46]",
    async () => {
      const { url, rows } = open();
      const exchanges = Array.from({ length: 20 }, (_, index) => [
        user(`Look after quay ${index}, and never paint it red. `.repeat(10)),
        assistant(`Quay ${index} is looked after in src/quay-${index}.ts. `.repeat(12)),
      ]).flat();
      await seed(directory.path, [{ key, drafts: exchanges }], url);
      const here = async (environment: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Row> => {
        const run = await runHere(directory.path, [...args, "--store", url, "--json", "--quiet"], { environment });
        expect([run.stderr, run.code]).toEqual(["", 0]);
        return objects(run.stdout)[0] ?? {};
      };
      // A compaction would use a checkpoint that is there, and need no better summary then.
      const compaction = await here(noKeys, "compact", key, "--model", "offline");
      const checkpoint = await here(noKeys, "checkpoint", key, "--model", "offline");
      const compactions = `SELECT id, session_key, summary, first_kept_entry_id, tokens_before, needs_summary_retry
        FROM compactions ORDER BY session_key, seq`;
      const lines = await runHere(directory.path, ["show", key, "--raw", "--all", "--store", url, "--json"]);
      const ids = objects(lines.stdout).map(({ id }) => id);
      const found = await rows(compactions);
      expect(found).toEqual([
        {
          id: compaction["id"],
          session_key: key,
          summary: expect.stringContaining("[Taken from the conversation as it was]"),
          first_kept_entry_id: ids[Number(compaction["firstKeptSeq"]) - 1],
          tokens_before: expect.anything(),
          needs_summary_retry: expect.anything(),
        },
      ]);
      expect(Number(found[0]?.["tokens_before"])).toBe(compaction["tokensBefore"]);
      expect(Number(found[0]?.["needs_summary_retry"])).toBe(1);
      const checkpoints = await rows(
        `SELECT id, session_key, summary, tokens_at_checkpoint, message_count_at_checkpoint, topics, key_decisions, open_questions,
           generated_by, covers_up_to FROM checkpoints`,
      );
      const list = (value: unknown): unknown => (typeof value === "string" ? JSON.parse(value) : value);
      expect(
        checkpoints.map((row) => ({
          ...row,
          tokens_at_checkpoint: Number(row["tokens_at_checkpoint"]),
          message_count_at_checkpoint: Number(row["message_count_at_checkpoint"]),
          topics: list(row["topics"]),
          key_decisions: list(row["key_decisions"]),
          open_questions: list(row["open_questions"]),
        })),
      ).toEqual([
        {
          id: checkpoint["id"],
          session_key: key,
          summary: checkpoint["summary"],
          tokens_at_checkpoint: checkpoint["tokensAtCheckpoint"],
          message_count_at_checkpoint: checkpoint["messageCountAtCheckpoint"],
          topics: checkpoint["topics"],
          key_decisions: checkpoint["keyDecisions"],
          open_questions: checkpoint["openQuestions"],
          generated_by: "extractive",
          covers_up_to: compaction["id"],
        },
      ]);

      // A model answers now: what it writes takes the place of the summary that was due.
      await using provider = createProviderSimulator({ fallback: () => summary });
      await provider.start();
      const withModel = { ...noKeys, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
      const chat = ["chat", "--key", key, "--once", "hello", "--model", model, "--store", url, "--quiet"];
      const retried = `SELECT needs_summary_retry FROM compactions WHERE id = '${String(compaction["id"])}'`;
      // A turn may end before the retry beside it does.
      for (let turns = 0; turns < 10 && Number((await rows(retried))[0]?.["needs_summary_retry"]) === 1; turns++)
        expect(await runChild(directory.path, chat, { environment: withModel })).toMatchObject({ code: 0, stderr: "" });
      expect((await rows(retried)).map((row) => Number(row["needs_summary_retry"]))).toEqual([0]);
      // In a compaction of its own, or as a note about the poorer one.
      const newest = (await rows(`SELECT summary FROM compactions WHERE session_key = '${key}' ORDER BY seq`)).at(-1);
      expect(newest?.["summary"]).toMatch(/^Topics:\n- quays\n/);

      // What GoClaw wrote down of its own summaries.
      goclawDatabase(join(directory.path, "goclaw.db"));
      await here(noKeys, "import", join(directory.path, "goclaw.db"));
      const imported = await rows(
        "SELECT id, needs_summary_retry FROM compactions WHERE session_key = 'agent:main:old' ORDER BY seq",
      );
      expect(imported.map((row) => [row["id"], Number(row["needs_summary_retry"])])).toEqual([
        ["k1", 1],
        ["k2", 0],
      ]);
      expect(
        await rows("SELECT id, generated_by, covers_up_to FROM checkpoints WHERE session_key = 'agent:main:old'"),
      ).toEqual([{ id: "c1", generated_by: "ollama", covers_up_to: "m2" }]);
    },
  );
});
