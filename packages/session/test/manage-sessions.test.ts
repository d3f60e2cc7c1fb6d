import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRecordOfType, type SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterAll, describe, expect, it } from "vitest";
import { until } from "@throughline/test-kit";
import { createScriptedModel } from "./scripted-model.ts";
import { allRecords, createFixture, key } from "./session-fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "manage-sessions-"));
let count = 0;
const stores: readonly (readonly [string, () => SessionStore])[] = [
  ["memory", () => createMemoryStore()],
  ["jsonl", () => createJsonlStore({ root: join(folder, `jsonl-${(count += 1)}`) })],
  ["sqlite", () => createSqliteStore({ path: join(folder, `${(count += 1)}.db`) })],
];

afterAll(() => rmSync(folder, { recursive: true }));

describe.each(stores)("sessions of a %s store", (_name, open) => {
  it("are listed by page: those of the agent, or of all agents", async () => {
    await using store = open();
    await using sessions = createFixture({ store }).sessions;
    for (const name of ["one", "two", "three"]) await (await sessions.open(name)).runTurn(`Hello ${name}`);
    await (await sessions.open("agent:other:cli:direct:four")).runTurn("Hello");
    const first = await sessions.list({ limit: 2, sort: "key" });
    expect(first.sessions.map(({ label, messageCount, state }) => [label, messageCount, state])).toEqual([
      ["one", 2, "active"],
      ["three", 2, "active"],
    ]);
    const second = await sessions.list({ limit: 2, sort: "key", cursor: String(first.nextCursor) });
    expect(second.sessions.map(({ key: of }) => of)).toEqual(["agent:main:cli:direct:two"]);
    expect(second.nextCursor).toBeNull();
    const all = await sessions.list({ allAgents: true });
    expect(all.sessions.map(({ agentId }) => agentId).toSorted()).toEqual(["main", "main", "main", "other"]);
    expect((await sessions.list({ keyPrefix: "agent:main:cli:direct:t" })).sessions).toHaveLength(2);
  });

  it("are found and opened without being made", async () => {
    await using store = open();
    await using sessions = createFixture({ store }).sessions;
    await (await sessions.open("kept")).runTurn("Hello");
    await (await sessions.open("gone")).runTurn("Hello");
    await sessions.delete("gone");
    for (const name of ["gone", "never", "agent:main:cli:direct:gone", { key: "agent:other:main" }]) {
      expect(await sessions.find(name)).toBeNull();
      await expect(sessions.open(name, { create: false })).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    }
    expect(await sessions.find("kept")).toMatchObject({ label: "kept", messageCount: 2, state: "active" });
    expect((await (await sessions.open("kept", { create: false })).messages()).messages).toHaveLength(2);
    expect((await sessions.list({ allAgents: true })).sessions).toHaveLength(1);
    await expect(sessions.find("!")).rejects.toMatchObject({ code: "KEY_INVALID" });
  });

  it("are archived by delete, and come back whole", async () => {
    await using store = open();
    await using sessions = createFixture({ store }).sessions;
    const session = await sessions.open("home");
    await session.runTurn("Remember this");
    const archived = await sessions.delete("home");
    expect(archived).toMatchObject({ state: "archived", key, sessionId: session.sessionId, messageCount: 2 });
    expect((await sessions.list()).sessions).toEqual([]);
    expect((await sessions.list({ state: "archived" })).sessions).toHaveLength(1);
    // A handle of what is gone says so; a new one is of a new session.
    await expect(session.runTurn("Still there?")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    const next = await sessions.open("home");
    expect(next.restored).toEqual({ turns: 0, messages: 0 });
    await expect(sessions.restore(session.sessionId)).rejects.toMatchObject({ code: "SESSION_EXISTS" });
    await sessions.delete(next.sessionId, { purge: true });
    expect(await sessions.restore(String(archived?.archiveId))).toMatchObject({ state: "active", label: "home" });
    expect((await sessions.open("home")).restored).toEqual({ turns: 1, messages: 2 });
  });

  it("are purged only when that is asked for", async () => {
    await using store = open();
    await using sessions = createFixture({ store }).sessions;
    const { sessionId } = await sessions.open("home");
    expect(await sessions.delete("home", { purge: true })).toBeNull();
    expect((await sessions.list({ state: "any" })).sessions).toEqual([]);
    await expect(sessions.restore(sessionId)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect(sessions.delete("home")).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    const again = await sessions.open("home");
    const archived = await sessions.delete("home");
    expect(await sessions.delete(again.sessionId, { purge: true })).toBeNull();
    expect(archived).not.toBeNull();
    expect((await sessions.list({ state: "any" })).sessions).toEqual([]);
  });

  it("are never deleted when they are the main one of an agent", async () => {
    await using store = open();
    await using sessions = createFixture({ store }).sessions;
    await sessions.open("agent:main:main");
    await expect(sessions.delete("agent:main:main", { purge: true })).rejects.toMatchObject({
      code: "SESSION_PROTECTED",
    });
    expect((await sessions.list()).sessions).toHaveLength(1);
  });

  it("are forked at their end or at a record, under a free key or a chosen one", async () => {
    await using store = open();
    await using sessions = createFixture({ store, script: createScriptedModel("one", "two", "three") }).sessions;
    const session = await sessions.open("home");
    await session.runTurn("1");
    await session.runTurn("2");
    const second = (await allRecords(store)).filter((record) => record.type === "message")[2];
    const whole = await sessions.fork("home");
    expect(whole).toMatchObject({ key: `${key}-fork`, label: "home", messageCount: 4 });
    const again = await sessions.fork(key, { label: "Try" });
    expect(again).toMatchObject({ key: `${key}-fork-2`, label: "Try" });
    const early = await sessions.fork("home", { key: "early", at: (second?.seq ?? 0) - 1 });
    expect(early).toMatchObject({ key: "agent:main:cli:direct:early", messageCount: 2 });
    const byId = await sessions.fork({ key }, { key: "by id", at: String(second?.id) });
    expect(byId).toMatchObject({ key: "agent:main:cli:direct:by-id", messageCount: 3 });
    const turn = await (await sessions.open("early")).runTurn("2, differently");
    expect(turn.text).toBe("three");
    expect((await allRecords(store)).filter((record) => record.type === "message")).toHaveLength(4);
    await expect(sessions.fork("home", { key: "early" })).rejects.toMatchObject({ code: "SESSION_EXISTS" });
    await expect(sessions.fork("home", { at: "nowhere" })).rejects.toMatchObject({ code: "RECORD_NOT_FOUND" });
    await expect(sessions.fork("home", { key: "agent:other:x" })).rejects.toMatchObject({
      code: "KEY_AGENT_MISMATCH",
    });
    expect((await sessions.list()).sessions).toHaveLength(5);
  });

  it("get another key, another label, or both", async () => {
    await using store = open();
    await using sessions = createFixture({ store }).sessions;
    const session = await sessions.open("home");
    await session.runTurn("Hello");
    expect(await sessions.rename("home", { label: "Kitchen" })).toMatchObject({ key, label: "Kitchen" });
    // The same handle: its key is what it was.
    await session.runTurn("Again");
    const renamed = await sessions.rename("home", { key: "kitchen" });
    expect(renamed).toMatchObject({
      key: "agent:main:cli:direct:kitchen",
      sessionId: session.sessionId,
      label: "Kitchen",
    });
    await expect(session.runTurn("And now?")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    expect((await sessions.open("kitchen")).restored.messages).toBe(4);
    expect(await sessions.rename("kitchen", { label: "" })).toMatchObject({ label: null });
    await sessions.open("home");
    await expect(sessions.rename("kitchen", { key: "home" })).rejects.toMatchObject({ code: "SESSION_EXISTS" });
    await expect(sessions.rename("kitchen", { key: "agent:other:x" })).rejects.toMatchObject({
      code: "KEY_AGENT_MISMATCH",
    });
    await expect(sessions.rename("kitchen", {})).rejects.toMatchObject({ code: "INPUT_INVALID" });
    expect((await sessions.list({ sort: "key" })).sessions.map(({ key: of }) => of)).toEqual([
      key,
      "agent:main:cli:direct:kitchen",
    ]);
  });
});

describe("a session in which a turn runs", () => {
  it("is deleted and renamed when the turn is over, and keeps all of it", async () => {
    const go = Promise.withResolvers<void>();
    const script = createScriptedModel({ text: "slow", after: go.promise }, "never");
    const { sessions, store } = createFixture({ script });
    const session = await sessions.open("home");
    const running = session.runTurn("1");
    await until(() => script.requests.length === 1);
    await expect(sessions.delete("home", { waitMs: 10 })).rejects.toMatchObject({ code: "SESSION_BUSY" });
    const renamed = sessions.rename("home", { key: "kitchen" });
    await new Promise((resolve) => setTimeout(resolve, 50));
    // Asked after the renaming, it finds its session closed.
    const late = session.runTurn("2").catch((error: unknown) => error);
    go.resolve();
    expect((await running).text).toBe("slow");
    expect(await renamed).toMatchObject({ messageCount: 2 });
    expect(await late).toMatchObject({ code: expect.stringMatching(/^(?:SESSION_CLOSED|ABORTED)$/) });
    expect(script.requests).toHaveLength(1);
    expect((await allRecords(store, "agent:main:cli:direct:kitchen")).at(-1)?.record).toMatchObject({
      data: { state: "done" },
    });
  });

  it("is not taken from under another process", async () => {
    const data = createMemoryData();
    const script = createScriptedModel({ text: "slow", hangs: true });
    const one = createFixture({ store: createMemoryStore({ data }), script });
    const session = await one.sessions.open("home");
    const running = session.runTurn("1");
    await until(() => script.requests.length === 1);
    const two = createFixture({ store: createMemoryStore({ data }) });
    for (const change of [
      () => two.sessions.delete("home", { waitMs: 20 }),
      () => two.sessions.delete("home", { waitMs: 20, purge: true }),
      () => two.sessions.rename("home", { key: "kitchen", waitMs: 20 }),
    ])
      await expect(change()).rejects.toMatchObject({ code: "SESSION_BUSY" });
    const aborted = AbortSignal.timeout(20);
    await expect(two.sessions.delete("home", { signal: aborted })).rejects.toMatchObject({ code: "ABORTED" });
    const forked = await two.sessions.fork("home");
    expect(forked.messageCount).toBe(1);
    await session.close();
    expect((await running).outcome).toBe("aborted");
    expect((await two.sessions.delete("home"))?.state).toBe("archived");
    const [last] = (await allRecords(two.store, forked.key)).filter((record) =>
      isRecordOfType(record.record, "message"),
    );
    expect(last?.record).toMatchObject({ message: { content: "1" } });
  });
});

describe("wrong calls", () => {
  const { sessions, store } = createFixture();
  it.each([
    [
      "list",
      () => sessions.list({ limitt: 3 } as object),
      "sessions.list(): `limitt` is not an option; did you mean `limit`?",
    ],
    [
      "list",
      () => sessions.list({ limit: 0 }),
      "sessions.list(): `limit` must be a whole number from 1 to 1000; received 0.",
    ],
    ["list", () => sessions.list({ state: "gone" as "any" }), "`state` must be one of"],
    ["delete", () => sessions.delete("home", { purge: "yes" as unknown as boolean }), "`purge` must be true or false"],
    ["delete", () => sessions.delete("home", { force: true } as object), "`force` is not an option"],
    ["delete", () => sessions.delete(7 as unknown as string), "sessions.delete(): `session` must be"],
    ["fork", () => sessions.fork("home", { at: -1 }), "sessions.fork(): `at` must be"],
    ["fork", () => sessions.fork("home", { key: "" }), "sessions.fork(): `key` must be a text that is not empty"],
    ["rename", () => sessions.rename("home", { name: "x" } as object), "`name` is not an option"],
    [
      "rename",
      () => sessions.rename("home", undefined as unknown as object),
      "sessions.rename(): `options` must be an object",
    ],
    ["restore", () => sessions.restore(undefined as unknown as string), "sessions.restore(): `archiveId` must be"],
  ])("of %s are refused before anything is read: %#", async (_name, call, message) => {
    await expect(call()).rejects.toMatchObject({ code: "INPUT_INVALID", message: expect.stringContaining(message) });
    expect((await store.list({ state: "any" })).sessions).toEqual([]);
  });
});
