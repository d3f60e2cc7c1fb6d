import { spawn } from "node:child_process";
import process from "node:process";
import { ThroughlineError, type SessionRef } from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import { describe, expect, inject, it } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { testSize } from "../../../tools/test-size.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const appendManyPath = bundledWorker(new URL("./append-many.ts", import.meta.url));

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

function refOf(index: number): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:shared-${index}` };
}

/** What the process was told, a line for each acknowledged append. */
function appendMany(schema: string, name: string, count: number, sessions: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [appendManyPath, url, schema, name, String(count), String(sessions)]);
    let [output, errors] = ["", ""];
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
    child.on("error", reject);
    child.on("close", (code) =>
      code === 0 ? resolve(output.trim().split("\n")) : reject(new Error(`${name} ended with ${code}: ${errors}`)),
    );
  });
}

/** Every acknowledged record once, at the seq that was said, in one line of parents. */
async function expectOneLine(store: PostgresStore, ref: SessionRef, said: readonly string[]): Promise<void> {
  const found: string[] = [];
  const texts: string[] = [];
  let parent: string | null = null;
  for await (const { records } of store.read(ref)) {
    for (const { seq, id, parentId, record } of records) {
      expect([seq, parentId]).toEqual([found.length + 1, parent]);
      found.push(`${seq}:${id}`);
      texts.push(String((record["message"] as { readonly content: string }).content));
      parent = id;
    }
  }
  expect(found.toSorted()).toEqual(said.toSorted());
  expect(new Set(texts).size).toBe(texts.length);
}

describe.skipIf(url === "")(
  `writers in many processes${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it.each([
      { processes: 2, turns: testSize({ short: 100, long: 2000 }), sessions: 1 },
      { processes: 8, turns: testSize({ short: 120, long: 10_000 }), sessions: 4 },
    ])(
      "$processes processes, $turns turns, $sessions sessions: one line each, every acknowledged record once",
      { tags: ["slow"], timeout: testSize({ short: 60_000, long: 600_000 }) },
      async ({ processes, turns, sessions }) => {
        const schema = newSchema();
        await using store = createPostgresStore({ url, schema });
        for (let index = 0; index < sessions; index++)
          await store.save(refOf(index), { sessionId: `shared-${index}` }, { ifRevision: null });
        const lines = await Promise.all(
          Array.from({ length: processes }, (_each, index) =>
            appendMany(schema, `writer-${index}`, turns / processes, sessions),
          ),
        );
        expect(lines.flat()).toHaveLength(turns);
        for (let index = 0; index < sessions; index++) {
          const own = lines.flat().filter((line) => line.startsWith(`${index} `));
          await expectOneLine(
            store,
            refOf(index),
            own.flatMap((line) => line.split(" ").slice(1)),
          );
        }
      },
    );

    it("of forks of many origins to one key one is made, and the others are told that it is taken", async () => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema, partitions: 2, notify: false });
      for (let index = 0; index < 8; index++)
        await store.save(refOf(index), { sessionId: `origin-${index}` }, { ifRevision: null });
      for (let round = 0; round < 10; round++) {
        const target = { ...refOf(0), key: `agent:main:target-${round}` };
        const outcomes = await Promise.all(
          Array.from({ length: 8 }, (_each, index) =>
            store.fork.fork(refOf(index), target, { sessionId: `fork-${round}-${index}` }).then(
              () => "made",
              (error: unknown) => (ThroughlineError.isInstance(error) ? error.code : String(error)),
            ),
          ),
        );
        expect(outcomes.toSorted()).toEqual([...Array.from({ length: 7 }, () => "SESSION_EXISTS"), "made"]);
      }
    });

    it("a transaction that the server undoes for another in a deadlock is made again", { tags: ["slow"] }, async () => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema, partitions: 2, notify: false });
      await store.save(refOf(0), { sessionId: "base" }, { ifRevision: null });
      await store.append(refOf(0), [{ type: "message", id: "x", message: { role: "user", content: "secret" } }]);
      await store.fork.fork(refOf(0), refOf(1), { sessionId: "fork" });
      await withClient(url, async (client) => {
        const lock = (id: string): Promise<unknown> =>
          client.query(`SELECT FROM "${schema}".sessions WHERE session_id = '${id}' FOR UPDATE`);
        await client.query("BEGIN");
        await lock("base");
        // It holds the fork, and waits for the base first: so it is the one that finds the deadlock.
        const redacting = store.redact(refOf(1), ["x"], { reason: "test" });
        await expect
          .poll(async () => {
            const { rows } = await withClient(url, (other) =>
              other.query(
                `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%"${schema}".sessions%'`,
              ),
            );
            return rows.length;
          })
          .toBe(1);
        await lock("fork");
        await client.query("COMMIT");
        expect((await redacting).seqs).toEqual([1]);
      });
    });
  },
);
