import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock, SessionStore } from "@throughline/core";
import { archivedAtMs, systemClock } from "@throughline/core/internal";
import { readResetPolicy } from "@throughline/policy";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { createScriptedModel } from "./scripted-model.ts";
import { allRecords, createFixture, key, outline, type Fixture } from "./session-fixture.ts";

const ref = { namespace: "", agentId: "main", key };
const minute = 60_000;
const idle = readResetPolicy({ reset: { mode: "idle", idleMinutes: 30 } });

/** A clock that is set by hand, and sleeps for real. */
function handClock(text: string): Clock & { nowAt: number } {
  const clock = {
    nowAt: Date.parse(text),
    nowMs: () => clock.nowAt,
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(Math.min(ms, 5), signal),
  };
  return clock;
}

type FixtureOptions = NonNullable<Parameters<typeof createFixture>[0]>;

interface ResetFixture {
  readonly clock: Clock & { nowAt: number };
  readonly open: (self: string, options?: FixtureOptions) => Fixture;
}

/** Sessions of several processes over the same data, by one clock. */
function fixture(at = "2026-03-02T10:00:00Z"): ResetFixture {
  const clock = handClock(at);
  const data = createMemoryData();
  const open = (self: string, options: FixtureOptions = {}): Fixture =>
    createFixture({
      store: createMemoryStore({ data, clock }),
      clock,
      timeZone: "UTC",
      owners: { self, stateOf: (owner) => (owner === self ? "self" : "unknown") },
      reset: idle,
      leaseMs: 90 * minute,
      ...options,
    });
  return { clock, open };
}

async function sessionIds(store: SessionStore): Promise<readonly string[]> {
  const { sessions } = await store.list({ state: "any", sort: "key" });
  return sessions.map(({ sessionId }) => sessionId);
}

describe("a session that begins anew by itself", () => {
  it(
    "is reset before the first message after the idle minutes, and archived whole [STO-10, C51]",
    { tags: ["slow"] },
    async () => {
      const { clock, open } = fixture();
      const { store, sessions, model, events } = open("p1");
      await using session = await sessions.open(key);
      await session.runTurn("first");
      const earlier = session.sessionId;
      const lastActivityMs = clock.nowAt;
      clock.nowAt += 30 * minute;
      await session.runTurn("second");
      expect(session.sessionId).toBe(earlier);
      clock.nowAt += 30 * minute + 1;
      const turn = await session.runTurn("third");
      expect(turn).toMatchObject({ outcome: "done" });
      expect(session.sessionId).not.toBe(earlier);
      expect(JSON.stringify(model.requests.at(-1)?.messages)).not.toContain("first");
      const facts = {
        reason: "idle",
        lastActivityMs: lastActivityMs + 30 * minute,
        dueAtMs: lastActivityMs + 60 * minute,
      };
      expect(events.filter(({ name }) => name === "session.reset")).toEqual([
        {
          name: "session.reset",
          ref,
          turnId: expect.any(String),
          ...facts,
          sessionId: earlier,
          newSessionId: session.sessionId,
        },
      ]);
      const records = await allRecords(store);
      expect(records[0]?.record).toMatchObject({
        customType: "throughline.note",
        data: { kind: "session-reset", ...facts, previousSessionId: earlier },
      });
      expect(outline(records).slice(1)).toEqual(["turn:open", "user", "assistant:stop", "call:answered", "turn:done"]);
      const archived = await store.load({ ...ref, archiveId: earlier });
      expect(archived).toMatchObject({ archived: true, messageCount: 4 });
      expect(archivedAtMs(archived?.entry ?? { sessionId: "" })).toBe(clock.nowAt);
      expect(events.some(({ name }) => name === "session.replaced")).toBe(false);
    },
  );

  it("never is without a policy, or while nothing was said in it", async () => {
    const { clock, open } = fixture();
    const { sessions } = open("p1", { reset: null });
    await using session = await sessions.open(key);
    await session.runTurn("first");
    const { sessionId } = session;
    clock.nowAt += 10_000 * minute;
    await session.runTurn("second");
    expect(session.sessionId).toBe(sessionId);
    const { sessions: withPolicy } = open("p2");
    await using empty = await withPolicy.open("agent:main:cli:direct:empty");
    const emptyId = empty.sessionId;
    clock.nowAt += 10_000 * minute;
    await empty.runTurn("first");
    expect(empty.sessionId).toBe(emptyId);
  });

  it("keeps a turn that is resumed, or asked for again with its key, in its session", async () => {
    const { clock, open } = fixture();
    const { sessions, model } = open("p1", { script: createScriptedModel({ error: new Error("down") }) });
    await using session = await sessions.open(key);
    await expect(session.runTurn("first", { idempotencyKey: "k" })).rejects.toMatchObject({ code: "MODEL_FAILED" });
    const { sessionId } = session;
    clock.nowAt += 600 * minute;
    await session.runTurn("first", { idempotencyKey: "k" });
    expect(session.sessionId).toBe(sessionId);
    model.push({ error: new Error("down") });
    await expect(session.runTurn("more")).rejects.toMatchObject({ code: "MODEL_FAILED" });
    clock.nowAt += 600 * minute;
    expect(await session.resume()).toMatchObject({ outcome: "done" });
    expect(session.sessionId).toBe(sessionId);
  });

  it("is reset once by two processes that decide at once, and both continue in the new session", async () => {
    const { clock, open } = fixture();
    const [one, two] = [open("p1"), open("p2")];
    await using first = await one.sessions.open(key);
    await using second = await two.sessions.open(key);
    await first.runTurn("first");
    await second.refresh();
    clock.nowAt += 31 * minute;
    const turns = await Promise.all([
      first.runTurn("from one", { whenBusy: "queue" }),
      second.runTurn("from two", { whenBusy: "queue" }),
    ]);
    expect(turns.map(({ outcome }) => outcome)).toEqual(["done", "done"]);
    expect(first.sessionId).toBe(second.sessionId);
    expect(await sessionIds(one.store)).toHaveLength(2);
    const words = outline(await allRecords(one.store));
    expect(words.filter((word) => word === "user")).toHaveLength(2);
    expect(words.filter((word) => word === "note:part")).toHaveLength(1);
  });

  it("is left alone while another process has a turn open in it, however old its newest message is", async () => {
    const { clock, open } = fixture();
    const go = Promise.withResolvers<void>();
    const one = open("p1", { script: createScriptedModel({ text: "late", after: go.promise }) });
    const two = open("p2");
    await using first = await one.sessions.open(key);
    const running = first.runTurn("a long one");
    while (one.model.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    clock.nowAt += 60 * minute;
    await using second = await two.sessions.open(key);
    await expect(second.runTurn("hello")).rejects.toMatchObject({ code: "SESSION_BUSY" });
    expect(await sessionIds(one.store)).toHaveLength(1);
    go.resolve();
    expect(await running).toMatchObject({ outcome: "done", text: "late" });
  });

  it("is reset daily at the hour of the zone, once, also when the clock is set back behind it [STO-13, C51]", async () => {
    const { clock, open } = fixture("2026-03-28T20:00:00Z");
    const reset = readResetPolicy({ reset: { mode: "daily", atHour: 2 } });
    // Berlin's clocks skip 02:00 on 29 March: the reset is due at 01:00 UTC.
    const { sessions, events } = open("p1", { reset, timeZone: "Europe/Berlin" });
    await using session = await sessions.open(key);
    const resets = () => events.filter(({ name }) => name === "session.reset").length;
    for (const [at, expected] of [
      ["2026-03-28T20:00:00Z", 0],
      ["2026-03-29T00:59:59Z", 0],
      ["2026-03-29T01:00:00Z", 1],
      ["2026-03-29T01:00:01Z", 1],
      ["2026-03-29T00:30:00Z", 1],
      ["2026-03-29T01:10:00Z", 1],
      ["2026-03-29T12:00:00Z", 1],
      ["2026-03-30T00:00:01Z", 2],
    ] as const) {
      clock.nowAt = Date.parse(at);
      await session.runTurn(at);
      expect([at, resets()]).toEqual([at, expected]);
    }
  });

  it("refuses a time zone that does not exist", () => {
    expect(() => fixture().open("p1", { timeZone: "Mars/Olympus" })).toThrow(/no time zone "Mars\/Olympus"/);
  });
});

describe("over SQLite", () => {
  it("eight handles that decide at once reset a session once", { tags: ["slow"] }, async () => {
    const folder = await mkdtemp(join(tmpdir(), "throughline-reset-"));
    const clock = handClock("2026-03-02T10:00:00Z");
    const stores = Array.from({ length: 8 }, () => createSqliteStore({ path: join(folder, "sessions.db"), clock }));
    try {
      const handles = [];
      for (const [index, store] of stores.entries()) {
        const owners = { self: `p${index}`, stateOf: () => "unknown" as const };
        const { sessions } = createFixture({ store, clock, owners, reset: idle, timeZone: "UTC" });
        handles.push(await sessions.open(key));
      }
      await handles[0]?.runTurn("first");
      for (const handle of handles) await handle.refresh();
      clock.nowAt += 31 * minute;
      await Promise.all(handles.map((handle, index) => handle.runTurn(`from ${index}`, { whenBusy: "queue" })));
      expect(new Set(handles.map(({ sessionId }) => sessionId)).size).toBe(1);
      expect(await sessionIds(stores[0] as SessionStore)).toHaveLength(2);
      const words = outline(await allRecords(stores[0] as SessionStore));
      expect(words.filter((word) => word === "user")).toHaveLength(8);
      for (const handle of handles) await handle.close();
    } finally {
      for (const store of stores) await store.close();
      await rm(folder, { recursive: true });
    }
  });
});
