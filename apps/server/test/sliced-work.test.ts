import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { createTokenEstimator } from "@throughline/tokens";
import { type SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createMemoryStore } from "@throughline/store-memory";
import { slicedCounter, sliceMessages } from "../src/sliced-counter.ts";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";
import { serve, type Serving } from "./serving.ts";

const folder = mkdtempSync(join(quickFolder(), "throughline-sliced-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let serving: Serving | null = null;
let isWatching = false;
afterEach(async () => {
  isWatching = false;
  await serving?.close();
  serving = null;
});

const said = (index: number): { readonly role: "user"; readonly content: string } => ({
  role: "user",
  content: `Message ${index} with some words.`,
});

describe("the tokens of many messages", () => {
  it("are counted in slices, and are the same", async () => {
    const counter = await createTokenEstimator().counterFor({ provider: "anthropic", modelId: "claude-opus-5" });
    const messages = Array.from({ length: 1050 }, (_, index) => said(index));
    const slices: number[] = [];
    const sliced = await slicedCounter(counter, messages, (count) => slices.push(count));
    expect([Math.max(...slices), slices.reduce((sum, count) => sum + count, 0)]).toEqual([sliceMessages, 1050]);
    expect(sliced.countMessages(messages)).toEqual(counter.countMessages(messages));
    expect(sliced.countMessages(messages.slice(10, 20))).toEqual(counter.countMessages(messages.slice(10, 20)));
    const long = [{ role: "user" as const, content: "word ".repeat(100_000) }, said(1)];
    slices.length = 0;
    await slicedCounter(counter, long, (count) => slices.push(count));
    expect(slices).toEqual([1, 1]);
  });
});

/** A store that counts the records that it gives between two turns of the loop. */
function counted(inner: SessionStore, onRecords: (sinceTurn: number) => void): SessionStore {
  let sinceTurn = 0;
  const watch = async (): Promise<void> => {
    isWatching = true;
    while (isWatching) {
      await nextTurn();
      sinceTurn = 0;
    }
  };
  void watch();
  return new Proxy(inner, {
    get(target, name: string) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      const call = (...args: readonly unknown[]): unknown => Reflect.apply(member, target, args) as unknown;
      if (name !== "read") return call;
      return async function* (...args: readonly unknown[]) {
        for await (const page of call(...args) as AsyncIterable<{ readonly records: readonly unknown[] }>) {
          sinceTurn += page.records.length;
          onRecords(sinceTurn);
          yield page;
        }
      };
    },
  });
}

describe.each([
  ["memory", () => createMemoryStore()],
  ["sqlite", () => createSqliteStore({ path: join(folder, "sessions.db") })],
] as const)("a route that reads a long session, over %s", (_name, open) => {
  it("handles one page of records between two turns of the loop", { tags: ["slow"] }, async () => {
    let most = 0;
    let read = 0;
    const store = open();
    const { pageRecords } = store.capabilities.limits;
    serving = await serve({
      openStore: () =>
        counted(store, (sinceTurn) => {
          most = Math.max(most, sinceTurn);
          read += 1;
        }),
    });
    const drafts = Array.from({ length: 500 }, (_, index) => ({ type: "message", message: said(index) }));
    await serving.begin("long", drafts);
    for (let batch = 0; batch < 7; batch++) await serving.ask("POST", "/sessions/long/records", { body: { drafts } });
    for (const path of [
      "window",
      "outline",
      "context?provider=anthropic",
      "export?to=jsonl",
      "export?to=openclaw",
      "findings",
      "calls",
      "checkpoints",
      "records?limit=500",
    ]) {
      [most, read] = [0, 0];
      const answer = await fetch(`${serving.url}/api/v1/sessions/long/${path}`, {
        headers: { authorization: `Bearer ${serving.token}` },
      });
      await answer.arrayBuffer();
      expect([path, answer.status, read > 0]).toEqual([path, 200, true]);
      expect([path, most <= pageRecords]).toEqual([path, true]);
    }
  });
});
