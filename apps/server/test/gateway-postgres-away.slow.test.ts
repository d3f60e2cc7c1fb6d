import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { walkBranch } from "@throughline/history";
import type { StoredRecord } from "@throughline/core";
import type { GatewayMode } from "@throughline/server";
import { createPostgresStore } from "@throughline/store-postgres";
import { type PostgresServer, startPostgres } from "../../../packages/store-postgres/test/postgres-server.ts";
import { testSize } from "../../../tools/test-size.ts";
import { type GatewayServing, serveGateway, sha256 } from "./gateway-serving.ts";

/** How long PostgreSQL is away under traffic. */
const awayMs = testSize({ short: 2500, long: 60_000 });
const everyMs = testSize({ short: 150, long: 1000 });
const enoughMs = 180_000;

let postgres: PostgresServer;
let folder = "";
beforeAll(async () => {
  const started = await startPostgres();
  if ("unavailable" in started) throw new Error(started.unavailable);
  postgres = started;
  folder = mkdtempSync(join(tmpdir(), "throughline-postgres-away-"));
}, enoughMs);
afterAll(async () => {
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
}, enoughMs);

interface Said {
  readonly role: string;
  readonly content: string;
}

/** What a client saw of a conversation: what it said and heard the end of, and what it met in place of answers. */
class Client {
  readonly heard: Said[] = [];
  readonly refusals: number[] = [];
  readonly #gateway: GatewayServing;
  readonly #key: string;
  readonly #isStateful: boolean;
  #count = 0;

  constructor(gateway: GatewayServing, key: string, isStateful: boolean) {
    this.#gateway = gateway;
    this.#key = key;
    this.#isStateful = isStateful;
  }

  /** Says one thing more, or the same again where its end was not heard. */
  async say(): Promise<void> {
    const question = { role: "user", content: `Question ${this.#count}.` };
    const messages = this.#isStateful ? [question] : [...this.heard, question];
    try {
      const answer = await fetch(`${this.#gateway.url}/anthropic/v1/messages`, {
        method: "POST",
        headers: {
          "x-api-key": this.#gateway.token,
          "anthropic-version": "2023-06-01",
          "throughline-session": this.#key,
        },
        body: JSON.stringify({ model: "claude-opus-5", max_tokens: 99, messages }),
      });
      if (answer.status !== 200) {
        await answer.text();
        return void this.refusals.push(answer.status);
      }
      const { content } = (await answer.json()) as { readonly content: readonly { readonly text: string }[] };
      this.heard.push(question, { role: "assistant", content: content.map(({ text }) => text).join("") });
      this.#count += 1;
    } catch {
      // The answer was broken off: its end was not stored.
      this.refusals.push(0);
    }
  }
}

async function said(store: ReturnType<typeof createPostgresStore>, key: string): Promise<readonly Said[]> {
  const found = (await store.list({ namespace: "" })).sessions.find(({ ref }) => ref.key.endsWith(`-${key}`));
  if (found === undefined) return [];
  const records: StoredRecord[] = [];
  for await (const page of store.read(found.ref)) records.push(...page.records);
  const head = records.findLast(({ side }) => !side)?.id ?? null;
  return walkBranch(records, head).path.flatMap(({ record }) => {
    if (record.type !== "message") return [];
    const { role, content } = record["message"] as { readonly role: string; readonly content: unknown };
    const blocks = typeof content === "string" ? [{ text: content }] : (content as readonly { text?: string }[]);
    return [{ role, content: blocks.map(({ text = "" }) => text).join("") }];
  });
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const short: readonly (readonly ["spool" | "refuse" | "pass", GatewayMode])[] = [
  ["spool", "record"],
  ["refuse", "record"],
  ["pass", "record"],
];
const cases = testSize({
  short,
  long: [...short, ["spool", "guard"], ["spool", "stateful"]],
});

describe("PostgreSQL that is killed under traffic and comes back", () => {
  it.each(cases)(
    "loses and doubles nothing that was acknowledged, with %s in %s mode",
    async (onStoreDown, mode) => {
      const name = `${onStoreDown}-${mode}`;
      const spoolFolder = join(folder, name);
      let answers = 0;
      const gateway = await serveGateway(
        { fallback: () => `Answer ${++answers}.` },
        { openStore: () => createPostgresStore({ url: postgres.url }) },
        { onStoreDown, spoolFolder },
        { mode },
      );
      try {
        const clients = ["a", "b"].map((key) => new Client(gateway, `${name}-${key}`, mode === "stateful"));
        const talk = async (forMs: number): Promise<void> => {
          for (const untilMs = performance.now() + forMs; performance.now() < untilMs;) {
            await Promise.all(clients.map((client) => client.say()));
            await sleep(everyMs);
          }
        };
        await talk(everyMs * 4);
        await postgres.kill();
        const talking = talk(awayMs);
        await sleep(awayMs);
        await postgres.start();
        await talking;
        await talk(everyMs * 4);
        const files = (): number => (existsSync(spoolFolder) ? readdirSync(spoolFolder).length : 0);
        await expect.poll(files, { timeout: 60_000 }).toBe(0);
        // What is missing of a history that the client holds comes with its next call.
        for (const client of clients) await client.say();
        const store = createPostgresStore({ url: postgres.url });
        for (const [index, client] of clients.entries()) {
          // Whoever stores the last reply may wait for the connection; each is there once, in order.
          const lost = async (): Promise<readonly Said[]> => {
            const log = await said(store, `${name}-${["a", "b"][index]}`);
            return client.heard.filter((one) => !log.some((it) => it.role === one.role && it.content === one.content));
          };
          await expect.poll(lost).toEqual([]);
          const own = await said(store, `${name}-${["a", "b"][index]}`);
          const texts = own.map(({ role, content }) => `${role} ${content}`);
          expect([name, texts.filter((text, at) => texts.indexOf(text) !== at)]).toEqual([name, []]);
          const places = client.heard.map(({ role, content }) => texts.indexOf(`${role} ${content}`));
          expect(places).toEqual(places.toSorted((one, other) => one - other));
        }
        await store.close();
        const calls = await gateway.calls(1);
        const rebuilt = await Promise.all(
          calls
            .filter(({ session }) => session.includes(name))
            .map(async (call) => sha256(await gateway.requestOf(call))),
        );
        const sent = gateway.simulator.requests.map(({ bytes }) => sha256(bytes));
        for (const hash of rebuilt) expect(sent).toContain(hash);
        const metrics = await (
          await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${gateway.serving.token}` } })
        ).text();
        const passed = Number(/unrecorded_total\{reason="store"\} (\d+)/.exec(metrics)?.[1] ?? 0);
        const refusals = clients.flatMap((client) => client.refusals);
        if (mode !== "stateful" && onStoreDown === "spool") {
          // The provider was asked as often as there are calls, and nobody was refused.
          expect([refusals, rebuilt.toSorted()]).toEqual([[], sent.toSorted()]);
        } else if (onStoreDown === "pass") {
          expect([refusals, rebuilt.length + passed]).toEqual([[], sent.length]);
        } else {
          // A call waits 5 s for the store before it is refused.
          if (awayMs > 10_000) expect(refusals.length).toBeGreaterThan(0);
          for (const status of refusals) expect([0, 409, 503]).toContain(status);
        }
      } finally {
        await gateway.close();
      }
    },
    enoughMs + awayMs * 2,
  );
});
