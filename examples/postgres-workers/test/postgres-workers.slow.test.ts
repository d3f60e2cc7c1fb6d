import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { createProviderSimulator } from "@throughline/testing";
import { createPostgresStore } from "@throughline/store-postgres";
import { afterAll, describe, expect, it } from "vitest";
import { startPostgres, type PostgresServer } from "../../../packages/store-postgres/test/postgres-server.ts";
import { createQueue } from "../src/queue.ts";

const started = await startPostgres();
const isHere = !("unavailable" in started);

describe.skipIf(!isHere)(`workers on PostgreSQL${isHere ? "" : `: needs PostgreSQL, ${started.unavailable}`}`, () => {
  const database = started as PostgresServer;
  const workers: ChildProcess[] = [];
  afterAll(async () => {
    for (const worker of workers) worker.kill("SIGKILL");
    await database.stop();
  });

  it("answer each message once and in order, although one is killed in the middle of an answer", async () => {
    const users = ["ada", "ben", "cleo"];
    let delayMs = 40;
    await using provider = createProviderSimulator({
      fallback: () => ({ kind: "answer", content: "This takes a moment to say.", delayMs }),
    });
    await provider.start();
    await using store = createPostgresStore({ url: database.url });
    await store.list(); // the schema is there before two workers want to make it
    const queue = await createQueue(database.url, 1000);
    let rounds = 0;
    const addRound = async (): Promise<void> => {
      rounds += 1;
      for (const user of users)
        await queue.add({ id: `${user}-${rounds}`, user, text: `Message ${rounds} of ${user}` });
    };
    const answered = new Map<string, string>();
    const start = (name: string): ChildProcess => {
      const worker = spawn(process.execPath, [join(import.meta.dirname, "../src/worker.ts"), name], {
        env: {
          ...process.env,
          DATABASE_URL: database.url,
          ANTHROPIC_API_KEY: "sk-test",
          ANTHROPIC_BASE_URL: provider.url,
          LEASE_MS: "1000",
        },
        stdio: ["ignore", "pipe", "inherit"],
      });
      worker.stdout?.on("data", (chunk: Buffer) => {
        for (const line of chunk.toString().trimEnd().split("\n")) {
          const { id, worker: by } = JSON.parse(line) as { readonly id: string; readonly worker: string };
          answered.set(id, by);
        }
      });
      workers.push(worker);
      return worker;
    };
    const first = start("one");
    start("two");
    while (new Set(answered.values()).size < 2) {
      await addRound();
      await sleep(500);
    }
    delayMs = 3000;
    const before = provider.requests.length;
    for (let more = 0; more < 3; more++) await addRound();
    // A worker has one request at a time: with two of them open, each worker is in the middle of an answer.
    await expect
      .poll(() => provider.requests.slice(before).filter(({ outcome }) => outcome === "pending").length, {
        interval: 5,
      })
      .toBe(2);
    const closed = once(first, "close");
    first.kill("SIGKILL");
    await closed;
    delayMs = 1;
    for (const user of users) {
      await expect.poll(() => answered.get(`${user}-${rounds}`)).toBe("two");
    }
    for (const user of users) {
      const pages = await Array.fromAsync(
        store.read({ namespace: "", agentId: "main", key: `agent:main:queue:direct:${user}` }),
      );
      const messages = pages
        .flatMap(({ records }) =>
          records.map(
            ({ record }) => record["message"] as { readonly role: string; readonly content: unknown } | undefined,
          ),
        )
        .filter((message) => message?.role === "user");
      expect(
        messages.map((message) => JSON.stringify(message?.content)).map((text) => /Message \d+/.exec(text)?.[0]),
      ).toEqual(Array.from({ length: rounds }, (_, round) => `Message ${round + 1}`));
    }
    expect(provider.refusals).toEqual([]);
    const exits = once(workers[1] as ChildProcess, "exit");
    workers[1]?.kill("SIGTERM");
    expect(await exits).toEqual([0, null]);
    await queue.close();
  }, 90_000);
});
