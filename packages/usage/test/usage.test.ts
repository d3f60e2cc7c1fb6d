import { mkdtempSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { forkSession, throughlineDraft } from "@throughline/core/internal";
import { redactRecords, sessionRef, type RecordDraft, type SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { openUsage } from "../src/index.ts";
import type { UsageReader } from "../src/internal.ts";

const folder = mkdtempSync(join(tmpdir(), "usage-"));
const readers: UsageReader[] = [];
afterEach(() => {
  for (const reader of readers.splice(0)) reader.close();
});

function usageOf(store: SessionStore, path?: string): UsageReader {
  const reader = openUsage(store, path === undefined ? {} : { path });
  readers.push(reader);
  return reader;
}

const startMs = Date.parse("2026-05-07T10:00:00Z");
let minute = 0;

function at(minutes: number): string {
  return new Date(startMs + minutes * 60_000).toISOString();
}

function question(text: string = "Hi", minutes: number = minute++): RecordDraft {
  return { type: "message", timestamp: at(minutes), message: { role: "user", content: text } };
}

function reply(fields: Readonly<Record<string, unknown>> = {}, minutes: number = minute++): RecordDraft {
  const { usage = { input: 100, output: 10, cacheRead: 1000, cacheWrite: 0 }, ...message } = fields;
  return {
    type: "message",
    timestamp: at(minutes),
    message: {
      role: "assistant",
      content: [{ type: "text", text: "Hello" }],
      provider: "anthropic",
      model: "claude-opus-4-5",
      usage,
      ...message,
    },
  };
}

async function session(
  store: SessionStore,
  name: string,
  drafts: readonly RecordDraft[],
  entry: object = {},
): Promise<ReturnType<typeof sessionRef>> {
  const ref = sessionRef({ key: `agent:main:cli:direct:${name}` });
  await store.save(ref, { sessionId: name, ...entry }, { ifRevision: null, createdAtMs: startMs + minute * 60_000 });
  await store.append(ref, drafts);
  return ref;
}

const stores: readonly (readonly [string, (name: string) => SessionStore])[] = [
  ["memory", () => createMemoryStore()],
  ["SQLite", (name) => createSqliteStore({ path: join(folder, `${name}.db`) })],
  ["JSON Lines", (name) => createJsonlStore({ root: join(folder, name) })],
];

describe.each(stores)("usage of a %s store", (_, create) => {
  it("counts each call once, and reads only what is new", async () => {
    const store = create("once");
    const usage = usageOf(store);
    const ref = await session(store, "one", [question(), reply(), question(), reply()]);
    const first = await usage.report();
    expect(first.total).toMatchObject({ calls: 2, seconds: 120, input: 200, output: 20, cacheRead: 2000 });
    expect(first.total.costUsd).toBeCloseTo((200 * 5 + 20 * 25 + 2000 * 0.5) / 1e6, 12);
    expect(first.read).toEqual({ sessions: 1, records: 4 });
    await store.append(ref, [question(), reply()]);
    const second = await usage.report();
    expect(second.total.calls).toBe(3);
    expect(second.read.records).toBe(2);
    expect((await usage.report()).read.records).toBe(0);
    await store.close();
  });

  it("counts the calls of a fork in its origin", async () => {
    const store = create("fork");
    const usage = usageOf(store);
    const ref = await session(store, "origin", [question(), reply(), question(), reply()]);
    const to = sessionRef({ key: "agent:main:cli:direct:fork" });
    await forkSession(store, ref, to, { sessionId: "fork" });
    await store.append(to, [question(), reply()]);
    const { rows, total } = await usage.report({ by: ["session"] });
    expect(total.calls).toBe(3);
    expect(rows.map(({ name, calls }) => [name, calls])).toEqual([
      ["origin", 2],
      ["fork", 1],
    ]);
    await store.remove(ref, { purge: true });
    expect((await usage.report()).total.calls, "the fork has the calls now").toBe(3);
    await store.close();
  });

  it("loses the calls of a redacted message and of a purged session", async () => {
    const store = create("redacted");
    const usage = usageOf(store);
    const ref = await session(store, "one", [question(), reply(), question(), reply()]);
    await session(store, "two", [question(), reply()]);
    expect((await usage.report()).total.calls).toBe(3);
    const page = await Array.fromAsync(store.read(ref));
    const id = page[0]?.records[1]?.id ?? "";
    await redactRecords(store, ref, [id], { reason: "test" });
    await store.append(ref, [question(), reply()]);
    expect((await usage.report()).total.calls).toBe(3);
    await store.remove(ref, { purge: true });
    expect((await usage.report()).total.calls).toBe(1);
    await store.close();
  });
});

describe("usage", () => {
  it("counts the copies of a call once, whichever session is found first", async () => {
    const store = createMemoryStore();
    const usage = usageOf(store);
    const responseId = "msg_01Bx2S5C93iR5qDg2qaVaUFf";
    const late = minute + 100;
    const ref = sessionRef({ key: "agent:main:cli:direct:late" });
    await store.save(ref, { sessionId: "late" }, { ifRevision: null, createdAtMs: startMs + late });
    await store.append(ref, [question("Hi", late), reply({ responseId }, late + 1)]);
    expect((await usage.report({ by: ["session"] })).rows).toMatchObject([{ name: "late", calls: 1 }]);
    const early = sessionRef({ key: "agent:main:cli:direct:early" });
    await store.save(early, { sessionId: "early" }, { ifRevision: null, createdAtMs: startMs - 1 });
    await store.append(early, [question(), reply({ responseId }), question(), reply()]);
    const { rows, total } = await usage.report({ by: ["session"] });
    expect(rows.map(({ name, calls }) => [name, calls])).toEqual([["early", 2]]);
    expect(total.calls).toBe(2);
  });

  it("adds what later blocks of a reply state", async () => {
    const store = createMemoryStore();
    const responseId = "msg_01Bx2S5C93iR5qDg2qaVaUFf";
    const part = { responseId, fragment: true, usage: null };
    const further = {
      type: "usage",
      kind: "claude-code.reply",
      timestamp: at(3),
      usage: { input: 0, output: 5, cacheRead: 0, cacheWrite: 0 },
    };
    const ref = await session(store, "one", [question("Hi", 0), reply({ responseId }, 1), reply(part, 2)]);
    const usage = usageOf(store);
    expect((await usage.report()).total).toMatchObject({ calls: 1, output: 10, seconds: 120 });
    await store.append(ref, [reply(part, 3), further]);
    expect((await usage.report()).total).toMatchObject({ calls: 1, output: 15, seconds: 180 });
  });

  it("counts a call of the gateway once, with the time that it measured, and a call whose reply was not stored", async () => {
    const store = createMemoryStore();
    const facts = { turnId: "t", step: 1, provider: "anthropic", model: "claude-opus-4-5", headId: null };
    const call = (fields: object): RecordDraft => ({
      ...throughlineDraft("call", { ...facts, ...fields }),
      timestamp: at(9),
    });
    const exchange = throughlineDraft("exchange", { startedMs: startMs, endedMs: startMs + 4000 });
    await session(store, "one", [
      question("Hi", 0),
      reply({}, 5),
      { ...exchange, timestamp: at(5) },
      call({ toSeq: 1, actual: [100, 10, 1000, 0] }),
      call({ toSeq: 4, actual: [7, 3, 0, 0], attempt: 1 }),
      call({ toSeq: 4, part: 2 }),
    ]);
    expect((await usageOf(store).report()).total).toMatchObject({
      calls: 2,
      input: 107,
      output: 13,
      seconds: 4 + 4 * 60,
    });
  });

  it("leaves out the later blocks of a call whose counts are impossible", async () => {
    const store = createMemoryStore();
    const responseId = "msg_01Bx2S5C93iR5qDg2qaVaUFf";
    const usage = { input: 40_000_000, output: 3, cacheRead: 0, cacheWrite: 0 };
    const further = {
      type: "usage",
      kind: "claude-code.reply",
      usage: { input: 0, output: 5, cacheRead: 0, cacheWrite: 0 },
    };
    const part = { responseId, fragment: true, usage: null };
    await session(store, "one", [question(), reply({ responseId, usage }), reply(part), further]);
    expect((await usageOf(store).report()).total).toMatchObject({ calls: 0, output: 0, doubtfulCalls: 1 });
  });

  it("takes the cost that a program states, and prices the other calls", async () => {
    const store = createMemoryStore();
    const counts = { input: 100, output: 10, cacheRead: 0, cacheWrite: 0 };
    const stated = (total: number): Readonly<Record<string, unknown>> => ({ usage: { ...counts, cost: { total } } });
    await session(store, "one", [
      question(),
      reply(stated(0.05)),
      reply(stated(0)),
      reply(stated(-1)),
      reply(stated(1e6)),
    ]);
    const { total } = await usageOf(store).report();
    expect(total).toMatchObject({ calls: 4, statedUsd: 0.05, unpricedCalls: 0 });
    expect(total.costUsd).toBeCloseTo(0.05 + (3 * (100 * 5 + 10 * 25)) / 1e6, 12);
  });

  it("shows tokens without cost for a model without a price", async () => {
    const store = createMemoryStore();
    await session(store, "one", [question(), reply({ model: "no-such-model" }), question(), reply()]);
    const { rows, total } = await usageOf(store).report({ by: ["model"] });
    expect(rows).toMatchObject([
      { group: { model: "claude-opus-4-5" }, unpricedCalls: 0 },
      { group: { model: "no-such-model" }, costUsd: null, unpricedCalls: 1, input: 100 },
    ]);
    expect(total).toMatchObject({ unpricedCalls: 1, input: 200 });
    expect(total.costUsd).not.toBeNull();
  });

  it.each([
    { input: -1, output: 5, cacheRead: 0, cacheWrite: 0 },
    { input: 4_281_808, output: 5, cacheRead: 0, cacheWrite: 0 },
    { input: 1.5, output: 5, cacheRead: 0, cacheWrite: 0 },
    { input: "many", output: 5, cacheRead: 0, cacheWrite: 0 },
  ])("does not believe %o", async (counts) => {
    const store = createMemoryStore();
    await session(store, "one", [question(), reply({ usage: counts }), question(), reply()]);
    expect((await usageOf(store).report()).total).toMatchObject({ calls: 1, input: 100, doubtfulCalls: 1 });
  });

  it("groups by two names, and counts windows of five hours", async () => {
    const store = createMemoryStore();
    const entry = { importedFrom: { format: "pi" }, cwd: "/w" };
    await session(store, "one", [question("Hi", 0), reply({}, 1), reply({}, 299), reply({}, 301)], entry);
    const usage = usageOf(store);
    const { rows } = await usage.report({ by: ["program", "folder"] });
    expect(rows).toMatchObject([{ group: { program: "pi", folder: "/w" }, calls: 3 }]);
    const blocks = await usage.blocks();
    expect(blocks.map(({ startMs: from, calls }) => [new Date(from).toISOString(), calls])).toEqual([
      ["2026-05-07T10:00:00.000Z", 2],
      ["2026-05-07T15:00:00.000Z", 1],
    ]);
    const some = await usage.report({ sinceMs: startMs + 299 * 60_000, untilMs: startMs + 301 * 60_000 });
    expect(some.total.calls).toBe(1);
    expect((await usage.report({ model: "claude-sonnet" })).total.calls).toBe(0);
  });

  it("counts a call without a time in no day and in no window", async () => {
    const store = createMemoryStore();
    const undated = { ...reply(), timestamp: "1970-01-01T00:00:00.000Z" };
    await session(store, "printed", [undated, reply({}, 1)], { importedFrom: { format: "claude-code" } });
    const usage = usageOf(store);
    for (const by of ["day", "week", "month"] as const) {
      const { rows, total } = await usage.report({ by: [by], timeZone: "UTC" });
      expect([rows.map(({ group, calls }) => [group[by] === null, calls]), total.calls]).toEqual([
        [
          [true, 1],
          [false, 1],
        ],
        2,
      ]);
    }
    expect((await usage.blocks()).map(({ calls }) => calls)).toEqual([1]);
    expect((await usage.report({ sinceMs: startMs })).total.calls).toBe(1);
  });

  it("continues from its file, which names no session", async () => {
    const store = createMemoryStore();
    const path = join(folder, "ledger.db");
    await session(store, "secretname", [question("secretword"), reply()]);
    const first = openUsage(store, { path });
    await first.report();
    first.close();
    const again = usageOf(store, path);
    expect((await again.report()).read.records).toBe(0);
    again.clear();
    expect((await again.report()).read.records).toBe(2);
    again.close();
    readers.pop();
    const bytes = readFileSync(path, "latin1");
    expect(bytes).not.toContain("secret");
    expect(bytes).toContain("claude-opus-4-5");
    expect(statSync(path).isFile()).toBe(true);
  });
});
