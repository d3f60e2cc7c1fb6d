import { once } from "node:events";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createSqliteStore } from "@throughline/store-sqlite";
import { sessionRef, type SessionStore } from "@throughline/core";
import { createPostgresStore } from "@throughline/store-postgres";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { type PostgresServer, startPostgres } from "../../../packages/store-postgres/test/postgres-server.ts";
import { withClient } from "../../../packages/store-postgres/test/store-under-test.ts";
import { testSize } from "../../../tools/test-size.ts";
import { objects, runHere, start, temporaryDirectory } from "./harness.ts";

const kills = testSize({ short: 6, long: 60 });
vi.setConfig({ testTimeout: 120_000 + kills * 20_000 });

let server: PostgresServer | { readonly unavailable: string };
let url = "";
beforeAll(async () => {
  server = await startPostgres();
  if (!("unavailable" in server)) url = server.url;
});
afterAll(async () => {
  if (!("unavailable" in server)) await server.stop();
});

const planted = "zebrafish";
const sessions = testSize({ short: 12, long: 60 });
const records = 120;

async function fill(store: SessionStore): Promise<void> {
  for (let session = 0; session < sessions; session++) {
    const ref = sessionRef({ key: `agent:main:${session}` });
    await store.save(ref, { sessionId: `session-${session}`, label: planted }, { ifRevision: null });
    const message = (at: number) => ({ role: "user", content: `${planted} ${session} ${at}` });
    await store.append(
      ref,
      Array.from({ length: records }, (_, at) => ({ type: "message", message: message(at) })),
    );
  }
  await store.close();
}

function filesWith(folder: string, word: string): readonly string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name));
  return names.filter((path) => statSync(path).isFile() && readFileSync(path, "latin1").includes(word));
}

/** Runs the command until a random moment. Returns whether it was killed. */
async function runUntilKilled(home: string, args: readonly string[], mostMs: number): Promise<boolean> {
  const child = start(home, args);
  const ended = once(child, "close");
  child.stdout.resume();
  child.stderr.resume();
  // The first output says that the copy has begun.
  await Promise.race([once(child.stdout, "data"), ended]);
  await Promise.race([new Promise((resolve) => setTimeout(resolve, Math.random() * mostMs)), ended]);
  child.kill("SIGKILL");
  await ended;
  return child.signalCode === "SIGKILL";
}

interface Case {
  readonly from: string;
  readonly to: string;
  open(folder: string): SessionStore;
  /** Returns where the encrypted store shows the word. */
  shown(folder: string): Promise<readonly string[]>;
}

const inFiles = async (folder: string): Promise<readonly string[]> =>
  filesWith(folder, planted).filter((path) => !path.startsWith(join(folder, "plain")));

const cases: Readonly<Record<string, () => Case>> = {
  sqlite: () => ({
    from: "sqlite:plain?encrypted=0",
    to: "sqlite:coded",
    open: (folder) => createSqliteStore({ path: join(folder, "plain") }),
    shown: inFiles,
  }),
  jsonl: () => ({
    from: "jsonl:plain?encrypted=0",
    to: "jsonl:coded",
    open: (folder) => createJsonlStore({ root: join(folder, "plain") }),
    shown: inFiles,
  }),
  postgres: () => ({
    from: `${url}?schema=plain&encrypted=0`,
    to: `${url}?schema=coded`,
    open: () => createPostgresStore({ url: `${url}?schema=plain`, notify: false }),
    shown: () => rowsWith("coded", planted),
  }),
};

async function rowsWith(schema: string, word: string): Promise<readonly string[]> {
  return withClient(url, async (client) => {
    const tables = await client.query<{ name: string }>(
      "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1",
      [schema],
    );
    const found: string[] = [];
    for (const { name } of tables.rows) {
      const sql = `SELECT FROM "${schema}"."${name}" t WHERE t::text LIKE $1 OR t::text LIKE $2 LIMIT 1`;
      const { rowCount } = await client.query(sql, [`%${word}%`, `%${Buffer.from(word).toString("hex")}%`]);
      if (rowCount !== 0) found.push(name);
    }
    return found;
  });
}

describe.each(Object.entries(cases))("the encryption of a store that holds data, %s", (kind, caseOf) => {
  it("is killed at random, and the next run goes on until the copy has everything and shows nothing", async (context) => {
    if (kind === "postgres" && "unavailable" in server) return context.skip(server.unavailable);
    const directory = temporaryDirectory();
    onTestFinished(() => directory.remove());
    const home = directory.path;
    const { from, to, open, shown } = caseOf();
    const run = (args: readonly string[]) => runHere(home, args);
    await fill(open(home));
    expect((await run(["encryption", "init", "--main-key", "file:main.key"])).code).toBe(0);
    const settings = { encryption: { keyring: "keys.db", mainKey: "file:main.key" } };
    writeFileSync(join(home, "config.json"), JSON.stringify(settings));
    const copy = ["copy", "--all", "--all-agents", "--store", from, "--to-store", to];
    const copied = async (session: number) =>
      (await run(["show", `agent:main:${session}`, "--all", "--store", to, "--json"])).stdout.split(planted).length - 1;
    let killed = 0;
    let wasIncomplete = false;
    for (let round = 0; round < kills * 3 && killed < kills; round++) {
      if (!(await runUntilKilled(home, copy, 300))) continue;
      killed += 1;
      // Kills of runs that find everything copied prove nothing.
      for (let session = 0; session < sessions && !wasIncomplete; session++)
        wasIncomplete = (await copied(session)) < records;
    }
    expect({ wasKilled: killed > 0, wasIncomplete }).toEqual({ wasKilled: true, wasIncomplete: true });
    expect((await run(copy)).code).toBe(0);
    const again = objects((await run([...copy, "--json"])).stdout).filter(({ state }) => state !== undefined);
    expect(again.map(({ state }) => state)).toEqual(Array.from({ length: sessions }, () => "unchanged"));
    for (let session = 0; session < sessions; session++) {
      const [one, other] = await Promise.all(
        [from, to].map((store) => run(["show", `agent:main:${session}`, "--all", "--store", store, "--json"])),
      );
      expect(one?.stdout.split(planted).length).toBeGreaterThan(records);
      expect(other?.stdout.split(planted).length).toBe(one?.stdout.split(planted).length);
    }
    expect(await shown(home)).toEqual([]);
  });
});
