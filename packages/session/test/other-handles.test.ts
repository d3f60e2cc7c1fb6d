import { describe, expect, it } from "vitest";
import { resetSession, systemRandom } from "@throughline/core/internal";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createScriptedModel } from "./scripted-model.ts";
import { allRecords, createFixture, key, outline } from "./session-fixture.ts";

const ref = { namespace: "", agentId: "main", key };

/** Sessions as of another process: another name, over the same data. */
function fixtures(script = createScriptedModel()) {
  const data = createMemoryData();
  return ["p1", "p2"].map((self) =>
    createFixture({
      script,
      store: createMemoryStore({ data }),
      owners: { self, stateOf: (owner) => (owner === self ? "self" : "unknown") },
    }),
  ) as [ReturnType<typeof createFixture>, ReturnType<typeof createFixture>];
}

describe("a retry with the key of a turn that still runs elsewhere", () => {
  it("waits for it with queue and gets what came of it, and is refused without", async () => {
    const go = Promise.withResolvers<void>();
    const script = createScriptedModel({ text: "the only answer", after: go.promise });
    const [one, two] = fixtures(script);
    await using first = await one.sessions.open(key);
    await using second = await two.sessions.open(key);
    const running = first.runTurn("question", { idempotencyKey: "k" });
    while (script.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await expect(second.runTurn("question", { idempotencyKey: "k" })).rejects.toMatchObject({ code: "SESSION_BUSY" });
    const waiting = second.runTurn("question", { idempotencyKey: "k", whenBusy: "queue" });
    const third = second.runTurn("question", { idempotencyKey: "k", whenBusy: "queue" });
    while (!two.events.some(({ name }) => name === "turn.queued"))
      await new Promise((resolve) => setImmediate(resolve));
    go.resolve();
    expect(await running).toMatchObject({ text: "the only answer", replayed: false });
    expect(await waiting).toMatchObject({ text: "the only answer", replayed: true });
    expect(await third).toMatchObject({ text: "the only answer", replayed: true });
    expect(script.requests).toHaveLength(1);
    expect(outline(await one.records()).filter((word) => word === "user")).toHaveLength(1);
  });

  it("gives up when it waited as long as it may", async () => {
    const go = Promise.withResolvers<void>();
    const script = createScriptedModel({ text: "late", after: go.promise });
    const [one, two] = fixtures(script);
    await using first = await one.sessions.open(key);
    await using second = await two.sessions.open(key);
    const running = first.runTurn("question", { idempotencyKey: "k" });
    while (script.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const options = { idempotencyKey: "k", whenBusy: "queue", waitMs: 30 } as const;
    await expect(second.runTurn("question", options)).rejects.toMatchObject({ code: "SESSION_BUSY" });
    go.resolve();
    await running;
  });
});

describe("a session that another program resets", () => {
  it("writes nothing more, says so, and goes on in the new one only when it is told to", async () => {
    const [one, two] = fixtures();
    await using session = await one.sessions.open(key);
    await session.runTurn("before");
    const sessionId = session.sessionId;
    const fresh = await resetSession(two.store, ref, { random: systemRandom });
    const refused = { code: "SESSION_REPLACED", outcome: "not-applied" };
    const asked = one.model.requests.length;
    await expect(session.runTurn("after")).rejects.toMatchObject(refused);
    expect(session.replacement).toEqual({ sessionId, newSessionId: fresh.sessionId });
    expect(session.sessionId).toBe(sessionId);
    await expect(session.append([{ type: "label", targetId: "x", label: "y" }])).rejects.toMatchObject(refused);
    await expect(session.resume()).rejects.toMatchObject(refused);
    await expect(session.refresh()).rejects.toMatchObject(refused);
    expect(one.events.filter(({ name }) => name === "session.replaced")).toEqual([
      { name: "session.replaced", ref, turnId: expect.anything(), sessionId, newSessionId: fresh.sessionId },
    ]);
    expect(one.model.requests).toHaveLength(asked);
    expect(await allRecords(two.store)).toEqual([]);
    await session.acceptReset();
    expect(session).toMatchObject({ sessionId: fresh.sessionId, replacement: null });
    await session.runTurn("after");
    expect(JSON.stringify(one.model.requests.at(-1)?.messages)).not.toContain("before");
    expect(outline(await allRecords(two.store))).toEqual([
      "turn:open",
      "user",
      "assistant:stop",
      "call:answered",
      "turn:done",
    ]);
  });

  it("takes no record of an append by hand that was on its way", async () => {
    const [one, two] = fixtures();
    await using session = await one.sessions.open(key);
    await session.runTurn("before");
    await resetSession(two.store, ref, { random: systemRandom });
    // Nothing was read since the reset: the append itself finds it out.
    const append = session.append([{ type: "message", message: { role: "user", content: "stray" } }]);
    await expect(append).rejects.toMatchObject({ code: "SESSION_REPLACED" });
    expect(await allRecords(two.store)).toEqual([]);
  });

  it("is no news for the handle that resets it, nor while nothing was said", async () => {
    const [one, two] = fixtures();
    await using session = await one.sessions.open(key);
    await resetSession(two.store, ref, { random: systemRandom });
    await session.runTurn("first words");
    await session.reset();
    await session.runTurn("second words");
    expect(one.events.some(({ name }) => name === "session.replaced")).toBe(false);
    expect((await allRecords(two.store)).length).toBe(5);
  });
});

describe("sessions that are closed", () => {
  it("leave none open that was being opened meanwhile", async () => {
    for (let steps = 0; steps < 12; steps++) {
      const { sessions, model } = createFixture();
      const opening = sessions.open(key).then(
        (session) => session,
        (error: unknown) => error,
      );
      for (let step = 0; step < steps; step++) await Promise.resolve();
      await sessions.close();
      const opened = await opening;
      if (opened instanceof Error) expect(opened).toMatchObject({ code: "SESSION_CLOSED" });
      else {
        const { runTurn } = opened as Awaited<ReturnType<typeof sessions.open>>;
        await expect(runTurn.call(opened, "late")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
      }
      expect(model.requests).toHaveLength(0);
    }
  });
});
