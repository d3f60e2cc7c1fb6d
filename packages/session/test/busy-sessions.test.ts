import { describe, expect, it } from "vitest";
import { ThroughlineError, type AppendOptions, type Clock, type SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { createMemoryData, type MemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import type { TurnOwners } from "../src/process-owners.ts";
import { replaceMembers, until } from "@throughline/test-kit";
import { createScriptedModel, type ScriptedModel } from "./scripted-model.ts";
import { allRecords, createFixture, key, outline, type Fixture } from "./session-fixture.ts";

/** Processes of one test: each has a name, and some are gone. */
function owner(self: string, gone: ReadonlySet<string> = new Set()): TurnOwners {
  return { self, stateOf: (other) => (other === self ? "self" : gone.has(other) ? "gone" : "unknown") };
}

/** A clock that a test moves on. */
function movedClock(): Clock & { aheadMs: number } {
  const clock = { aheadMs: 0, nowMs: () => systemClock.nowMs() + clock.aheadMs, sleep: systemClock.sleep };
  return clock;
}

function process(
  data: MemoryData,
  script: ScriptedModel,
  owners: TurnOwners,
  options: { readonly clock?: Clock; readonly leaseMs?: number } = {},
): Fixture {
  const { clock } = options;
  const store = createMemoryStore({ data, ...(clock === undefined ? {} : { clock }) });
  return createFixture({ script, store, owners, ...options });
}

describe("a session that is busy", () => {
  it("turns of one process run one after the other, also through two handles", { tags: ["slow"] }, async () => {
    const script = createScriptedModel("one", "two", "three");
    const { sessions, records } = createFixture({ script });
    await using first = await sessions.open(key);
    await using second = await sessions.open(key);
    const turns = await Promise.all([first.runTurn("1"), second.runTurn("2"), first.runTurn("3")]);
    expect(turns.map(({ text }) => text)).toEqual(["one", "two", "three"]);
    const whole = ["turn:open", "user", "assistant:stop", "call:answered", "turn:done"];
    expect(outline(await records())).toEqual([...whole, ...whole, ...whole]);
    expect(script.requests[2]?.messages).toHaveLength(5);
  });

  it("rejects, queues and branches as asked, in one process", async () => {
    const go = Promise.withResolvers<void>();
    const script = createScriptedModel("before", { text: "slow", after: go.promise }, "on a branch", "after");
    const { sessions, records, store, events } = createFixture({ script });
    await using session = await sessions.open(key);
    await session.runTurn("0");
    const running = session.runTurn("1");
    await until(() => script.requests.length === 2);
    await expect(session.runTurn("2", { whenBusy: "reject" })).rejects.toMatchObject({
      code: "SESSION_BUSY",
      details: { turnId: expect.any(String), owner: expect.any(String), sinceMs: expect.any(Number) },
    });
    await expect(session.runTurn("2", { whenBusy: "queue", waitMs: 20 })).rejects.toMatchObject({
      code: "SESSION_BUSY",
    });
    const stop = new AbortController();
    const waiting = session.runTurn("2", { signal: stop.signal });
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: "ABORTED" });
    const branch = await session.runTurn("other way", { whenBusy: "branch" });
    expect(branch.text).toBe("on a branch");
    expect(branch.ref.key).toMatch(new RegExp(`^${key}-branch-[0-9a-f]{8}$`));
    expect(JSON.stringify(script.requests[2]?.messages)).not.toContain('"1"');
    const queued = session.runTurn("3");
    go.resolve();
    expect([(await running).text, (await queued).text]).toEqual(["slow", "after"]);
    expect(outline(await allRecords(store, branch.ref.key))).toEqual(outline((await records()).slice(0, 10)));
    expect(events.filter(({ name }) => name === "turn.queued")).toHaveLength(3);
    await using reopened = await sessions.open(branch.ref);
    expect(reopened.restored.messages).toBe(4);
  });

  it("a turn of another process is rejected by default, and waited for when asked", async () => {
    const data = createMemoryData();
    const go = Promise.withResolvers<void>();
    const script = createScriptedModel({ text: "slow", after: go.promise }, "second");
    const one = process(data, script, owner("p1"));
    const two = process(data, script, owner("p2"));
    await using first = await one.sessions.open(key);
    await using second = await two.sessions.open(key);
    const running = first.runTurn("1");
    await until(() => script.requests.length === 1);
    await expect(second.runTurn("2")).rejects.toMatchObject({
      code: "SESSION_BUSY",
      details: { owner: "p1", leaseUntilMs: expect.any(Number) },
    });
    expect(second.runningTurn).toMatchObject({ owner: "p1" });
    expect(second.interruptedTurn).toBeNull();
    const queued = second.runTurn("2", { whenBusy: "queue" });
    await until(() => two.events.some(({ name }) => name === "turn.queued"));
    go.resolve();
    expect([(await running).text, (await queued).text]).toEqual(["slow", "second"]);
    expect(script.requests[1]?.messages).toHaveLength(3);
    const branch = await second.runTurn("3", { whenBusy: "branch" });
    expect(branch.ref.key).toBe(key);
  });

  it("branches off the turn of another process, before its words", async () => {
    const data = createMemoryData();
    const go = Promise.withResolvers<void>();
    const script = createScriptedModel("before", { text: "slow", after: go.promise }, "branched");
    const one = process(data, script, owner("p1"));
    await using first = await one.sessions.open(key);
    await first.runTurn("0");
    const running = first.runTurn("1");
    await until(() => script.requests.length === 2);
    const two = process(data, script, owner("p2"));
    await using second = await two.sessions.open(key);
    const branch = await second.runTurn("2", { whenBusy: "branch" });
    go.resolve();
    await running;
    expect(branch.text).toBe("branched");
    const sent = JSON.stringify(script.requests[2]?.messages);
    expect(sent).toContain("before");
    expect(sent).not.toContain('"1"');
    expect((await one.store.load(branch.ref))?.entry).toMatchObject({ forkedFrom: { key } });
  });

  it("what a killed process left is told when the session is opened, and the conversation goes on at once", async () => {
    const data = createMemoryData();
    const script = createScriptedModel({ calls: [{ id: "1", name: "echo", arguments: { text: "x" } }] });
    const killed = process(data, script, owner("killed"));
    const session = await killed.sessions.open(key);
    const hangs = {
      definition: { name: "echo", description: "", inputSchema: {} },
      run: () => new Promise<string>(() => {}),
    };
    void session.runTurn("Do it", { tools: [hangs] }).catch(() => null);
    await until(() => killed.events.some(({ name }) => name === "tool.started"));
    await killed.store.close();
    const next = process(data, script, owner("next", new Set(["killed"])));
    await using reopened = await next.sessions.open(key);
    expect(reopened.interruptedTurn).toMatchObject({ owner: "killed", text: "Do it", sinceMs: expect.any(Number) });
    expect(reopened.runningTurn).toBeNull();
    script.push("I saw that it broke off.");
    const turn = await reopened.resume();
    expect(turn.text).toBe("I saw that it broke off.");
    expect(JSON.stringify(script.requests.at(-1)?.messages)).toContain(
      "The process ended while this call was under way",
    );
    expect(reopened.interruptedTurn).toBeNull();
    expect(next.events.map(({ name }) => name)).toContain("turn.interrupted");
    expect(outline(await next.records())).toEqual([
      "turn:open",
      "user",
      "assistant:toolUse",
      "call:answered",
      "turn:interrupted",
      "turn:open",
      "toolResult:error",
      "assistant:stop",
      "call:answered",
      "turn:done",
    ]);
  });

  it("of an owner nobody can judge the lease decides; who comes back late is fenced off and writes nothing", async () => {
    const data = createMemoryData();
    const clock = movedClock();
    const stopped = Promise.withResolvers<void>();
    const script = createScriptedModel({ text: "too late", after: stopped.promise }, "taken over");
    const one = process(data, script, owner("stopped"), { clock, leaseMs: 60_000 });
    const two = process(data, script, owner("other"), { clock });
    await using first = await one.sessions.open(key);
    const running = first.runTurn("1").catch((error: unknown) => error);
    await until(() => script.requests.length === 1);
    await using second = await two.sessions.open(key);
    await expect(second.runTurn("2")).rejects.toMatchObject({ code: "SESSION_BUSY" });
    clock.aheadMs += 61_000;
    expect(second.interruptedTurn).toMatchObject({ owner: "stopped", text: "1" });
    expect((await second.runTurn("2")).text).toBe("taken over");
    stopped.resolve();
    expect(await running).toMatchObject({ code: "TURN_FENCED" });
    expect(JSON.stringify(await two.records())).not.toContain("too late");
    expect(one.events.map(({ name }) => name)).toContain("lease.lost");
    script.push("back");
    expect((await first.runTurn("3")).text).toBe("back");
    expect(script.requests.at(-1)?.messages).toHaveLength(3);
  });

  it(
    "a long turn keeps its lease, and learns by renewing it that the turn was taken over",
    { tags: ["slow"] },
    async () => {
      const data = createMemoryData();
      const clock = movedClock();
      const script = createScriptedModel({ text: "long", hangs: true }, "mine");
      const one = process(data, script, owner("p1"), { clock, leaseMs: 900 });
      await using first = await one.sessions.open(key);
      const running = first.runTurn("1").catch((error: unknown) => error);
      // The model hangs for this turn, not for the one that takes it over.
      await until(() => script.requests.length === 1);
      await until(() => one.events.filter(({ name }) => name === "lease.renewed").length >= 3);
      const two = process(data, script, owner("p2"), { clock });
      await using second = await two.sessions.open(key);
      await expect(second.runTurn("2")).rejects.toMatchObject({ code: "SESSION_BUSY" });
      clock.aheadMs += 1000;
      await second.runTurn("2");
      expect(await running).toMatchObject({ code: "TURN_FENCED" });
    },
  );

  it("goes on after a store that failed in the middle of a turn", async () => {
    const data = createMemoryData();
    const script = createScriptedModel("lost", "found");
    const store = createMemoryStore({ data });
    let failures = 0;
    const failing = replaceMembers(store, {
      append: (...given) =>
        failures > 0 && given[2]?.turn?.action !== "open" && failures-- > 0
          ? Promise.reject(new Error("disk full"))
          : store.append(...given),
    });
    const { sessions, records } = createFixture({ script, store: failing });
    await using session = await sessions.open(key);
    failures = 2;
    await expect(session.runTurn("1")).rejects.toThrow("disk full");
    expect(session.interruptedTurn).toMatchObject({ text: "1" });
    expect((await session.runTurn("2")).text).toBe("found");
    expect(outline(await records())).toEqual([
      "turn:open",
      "user",
      "turn:interrupted",
      "turn:open",
      "user",
      "assistant:stop",
      "call:answered",
      "turn:done",
    ]);
  });

  it("takes in what others appended meanwhile, side records in the middle of a turn included", async () => {
    const data = createMemoryData();
    const go = Promise.withResolvers<void>();
    const script = createScriptedModel({ text: "one", after: go.promise }, "two");
    const one = process(data, script, owner("p1"));
    const two = process(data, script, owner("p2"));
    await using first = await one.sessions.open(key);
    await using second = await two.sessions.open(key);
    const running = first.runTurn("1");
    await until(() => script.requests.length === 1);
    await second.append([{ type: "label", targetId: "x", label: "beside" }]);
    await expect(
      second.append([{ type: "message", message: { role: "user", content: "between" } }]),
    ).rejects.toMatchObject({
      code: "SESSION_BUSY",
    });
    go.resolve();
    await running;
    await second.append([{ type: "message", message: { role: "user", content: "said elsewhere" } }]);
    const { messages } = await first.runTurn("2");
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(JSON.stringify(script.requests[1]?.messages)).toContain("said elsewhere");
    expect(one.events.flatMap((event) => (event.name === "record.appended" ? [event.record.seq] : []))).toEqual(
      Array.from({ length: 12 }, (_, index) => index + 1),
    );
  });

  it("an append whose outcome is unknown is repeated with its key: the store decides, and nothing is there twice", async () => {
    const data = createMemoryData();
    const script = createScriptedModel({ calls: [{ id: "1", name: "echo", arguments: { text: "x" } }] }, "done");
    const seen = new Map<string, number>();
    const unsure = unsureStore(createMemoryStore({ data }), ({ idempotencyKey = "none" }) => {
      const times = (seen.get(idempotencyKey) ?? 0) + 1;
      seen.set(idempotencyKey, times);
      // Every other first attempt reaches the log, and no first attempt is acknowledged.
      if (times === 1) return seen.size % 2 === 0 ? "written" : "lost";
      return "acknowledged";
    });
    const { sessions, records } = createFixture({ script, store: unsure });
    await using session = await sessions.open(key);
    expect((await session.runTurn("1")).text).toBe("done");
    expect((await session.runTurn("2", { idempotencyKey: "two" })).text).toBe("ok");
    expect([...seen.values()]).toEqual(Array.from(seen, () => 2));
    expect(seen.has("none")).toBe(false);
    expect(outline(await records())).toEqual([
      "turn:open",
      "user",
      "assistant:toolUse",
      "call:answered",
      "toolResult",
      "assistant:stop",
      "call:answered",
      "turn:done",
      "turn:open",
      "user",
      "assistant:stop",
      "call:answered",
      "turn:done",
    ]);
  });

  it("an append that is in the log and never acknowledged fails the turn, and no model is asked for it", async () => {
    const data = createMemoryData();
    const script = createScriptedModel("later");
    let isBroken = true;
    const unsure = unsureStore(createMemoryStore({ data }), () => (isBroken ? "written" : "acknowledged"));
    const { sessions, records } = createFixture({ script, store: unsure });
    await using session = await sessions.open(key);
    await expect(session.runTurn("1")).rejects.toMatchObject({ code: "STORE_IO", outcome: "unknown" });
    expect(outline(await records())).toEqual(["turn:open", "user"]);
    expect(script.requests).toHaveLength(0);
    isBroken = false;
    // Nobody runs what that left open: it holds up no later turn.
    expect((await session.runTurn("2")).text).toBe("later");
    expect(outline(await records())).toEqual([
      "turn:open",
      "user",
      "turn:interrupted",
      "turn:open",
      "user",
      "assistant:stop",
      "call:answered",
      "turn:done",
    ]);
  });

  it("two Sessions of one process wait for each other like handles of one", async () => {
    const data = createMemoryData();
    const go = Promise.withResolvers<void>();
    const script = createScriptedModel({ text: "one", after: go.promise }, "two");
    const first = createFixture({ script, store: createMemoryStore({ data }) });
    const second = createFixture({ script, store: createMemoryStore({ data }) });
    await using one = await first.sessions.open(key);
    await using two = await second.sessions.open(key);
    const running = one.runTurn("1");
    await until(() => script.requests.length === 1);
    const waiting = two.runTurn("2");
    await until(() => second.events.some(({ name }) => name === "turn.queued"));
    go.resolve();
    expect([(await running).text, (await waiting).text]).toEqual(["one", "two"]);
  });
});

/** A store whose appends are written and acknowledged, written and not acknowledged, or lost. */
function unsureStore(
  store: SessionStore,
  fateOf: (options: AppendOptions) => "acknowledged" | "written" | "lost",
): SessionStore {
  return replaceMembers(store, {
    async append(...given) {
      const fate = fateOf(given[2] ?? {});
      const result = fate === "lost" ? null : await store.append(...given);
      if (result !== null && fate === "acknowledged") return result;
      throw new ThroughlineError("STORE_IO", "The connection broke.", { outcome: "unknown" });
    },
  });
}
