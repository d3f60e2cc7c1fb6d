import { appendFileSync } from "node:fs";
import type { ChatModel, SessionRef, StoredRecord } from "@throughline/core";
import { createProviderSimulator } from "@throughline/testing";
import { createSessions } from "@throughline/session";
import { createPostgresStore } from "@throughline/store-postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type PostgresServer } from "../../../packages/store-postgres/test/postgres-server.ts";
import { testSize } from "../../../tools/test-size.ts";
import { startCuttingProxy, type Cut, type CuttingProxy } from "./cutting-proxy.ts";
import { runChild, temporaryDirectory } from "./harness.ts";

const started = await startPostgres();
const isHere = !("unavailable" in started);
const directory = temporaryDirectory();
afterAll(() => directory.remove());

const count = (text: string, part: string): number => text.split(part).length - 1;
const when = ["before-commit", "after-commit"] as const;
/** In the short tier one append is cut before its commit and the next one after it. */
const placesOf = (from: number): readonly (typeof when)[number][] =>
  testSize({ short: from % 2 === 1 ? when.slice(0, 1) : when.slice(1), long: [...when] });

describe.skipIf(!isHere)(
  `a connection to PostgreSQL that is cut${isHere ? "" : `: needs PostgreSQL, ${started.unavailable}`}`,
  () => {
    const server = started as PostgresServer;
    let proxy: CuttingProxy;
    let sessionCount = 0;
    const newRef = (): SessionRef => ({ namespace: "", agentId: "main", key: `agent:main:cut-${sessionCount++}` });
    const through = (): string => server.url.replace(/:\d+\/postgres$/, `:${proxy.port}/postgres`);

    beforeAll(async () => {
      proxy = await startCuttingProxy(server.port);
    });
    afterAll(async () => {
      await proxy[Symbol.asyncDispose]();
      await server.stop();
    });

    /** What the server has, asked past the proxy. */
    async function wordsIn(ref: SessionRef): Promise<string> {
      await using store = createPostgresStore({ url: server.url });
      const records: StoredRecord[] = [];
      if ((await store.load(ref)) !== null) for await (const page of store.read(ref)) records.push(...page.records);
      return JSON.stringify(records.map(({ record }) => record));
    }

    async function twoTurns(cut: Cut | null) {
      const ref = newRef();
      let step = 0;
      const asked: boolean[] = [];
      const chat: ChatModel = {
        provider: "anthropic",
        api: "anthropic",
        chat: async ({ modelId: model }) => {
          asked.push((await wordsIn(ref)).includes(step < 2 ? "question one" : "question two"));
          const call = { type: "toolCall" as const, id: "c1", name: "echo", arguments: {} };
          const text = { type: "text" as const, text: `answer ${++step}` };
          const content = step === 1 ? [call] : [text];
          const stopReason = step === 1 ? "toolUse" : "stop";
          const facts = { api: "anthropic-messages", provider: "anthropic", model, stopReason };
          return { message: { role: "assistant", content, ...facts }, stopReason, usage: null };
        },
      };
      const tools = [{ definition: { name: "echo", description: "", inputSchema: {} }, run: () => "tool one" }];
      await using store = createPostgresStore({ url: through(), timeoutMs: 20_000 });
      await using sessions = createSessions({ store, model: { chat, modelId: "m", windowTokens: 100_000 }, tools });
      await using session = await sessions.open(ref);
      proxy.cut = cut;
      const outcomes: string[] = [];
      for (const text of ["question one", "question two"]) {
        const turn = session.runTurn(text).then(
          () => "done",
          (error: { readonly code?: string }) => error.code ?? String(error),
        );
        outcomes.push(await turn);
      }
      const appends = proxy.appends();
      proxy.cut = null;
      return { outcomes, asked, words: await wordsIn(ref), appends };
    }

    it("at any append, before or after its commit: a turn is done only when the server has all of it, once", async () => {
      const clean = await twoTurns(null);
      expect(clean).toMatchObject({ outcomes: ["done", "done"], asked: [true, true, true] });
      expect(clean.appends).toBe(6);
      for (let from = 1; from <= clean.appends; from++)
        for (const place of placesOf(from))
          for (const cut of [
            { from, until: from, when: place },
            { from, when: place },
          ]) {
            const { outcomes, asked, words } = await twoTurns(cut);
            const label = JSON.stringify({ ...cut, outcomes, asked });
            note(["facade", "postgres", from, cut.until === undefined ? "all" : "one", place, outcomes.join(", ")]);
            expect(asked, label).not.toContain(false);
            // A single cut costs nothing: the append is repeated on another connection.
            if (cut.until !== undefined) expect(outcomes, label).toEqual(["done", "done"]);
            for (const [index, number] of ["one", "two"].entries()) {
              const isDone = outcomes[index] === "done";
              const copies = count(words, `"question ${number}"`);
              if (isDone) expect(copies, label).toBe(1);
              else expect(outcomes[index], label).toMatch(/^(STORE_|SESSION_BUSY)/);
              expect(copies, label).toBeLessThanOrEqual(1);
            }
            expect(count(words, '"state":"done"'), label).toBeGreaterThanOrEqual(
              outcomes.filter((outcome) => outcome === "done").length,
            );
          }
    });

    it("under chat --once: 0 only when the server has the whole turn, once", async () => {
      for (let from = 1; from <= 2; from++)
        for (const place of placesOf(from))
          for (const cut of [
            { from, until: from, when: place },
            { from, when: place },
          ]) {
            const ref = newRef();
            await using provider = createProviderSimulator({ fallback: () => "answer of the model" });
            await provider.start();
            const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
            const args = ["chat", "--once", "question of a person", "--key", ref.key];
            proxy.cut = cut;
            const run = await runChild(
              directory.path,
              [...args, "--model", "anthropic/claude-opus-5", "--store", through()],
              { environment },
            );
            proxy.cut = null;
            const words = await wordsIn(ref);
            const label = JSON.stringify({ ...cut, run });
            note(["chat --once", "postgres", from, cut.until === undefined ? "all" : "one", place, run.code]);
            expect(run.code, label).toBe(cut.until === undefined ? 1 : 0);
            expect(count(words, '"question of a person"'), label).toBeLessThanOrEqual(1);
            if (run.code === 0)
              for (const part of ["question of a person", "answer of the model", '"state":"done"'])
                expect(count(words, part), label).toBe(1);
          }
    });
  },
);

/** Lists what came of each position, for people; only when asked for. */
function note(facts: readonly unknown[]): void {
  const path = process.env["THROUGHLINE_FLUSH_MATRIX"];
  if (path !== undefined) appendFileSync(path, `${facts.join("\t")}\n`);
}
