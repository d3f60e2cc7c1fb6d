import { describe, expect, it } from "vitest";
import { readWindow, sessionRef, type SessionStore, userMessage } from "@throughline/core";
import { systemClock, systemRandom } from "@throughline/core/internal";
import { createHistory, planRewind } from "@throughline/history";
import { historyTargets } from "@throughline/history/internal";
import { readResetPolicy } from "@throughline/policy";
import { createMemoryStore } from "@throughline/store-memory";
import { createExtractiveSummarizer } from "@throughline/summarizer-providers";
import { leaseTurn } from "../src/lease-turn.ts";
import { createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { key, modelId } from "./session-fixture.ts";
import { calls, program, resultsIn, waitingStore } from "./waiting-program.ts";

/** A process that can compact, with a summarizer that needs no model. */
function agentProgram(store: SessionStore) {
  const model = createScriptedModel("Done.");
  const agents = createAgentSessions({
    store,
    model: { chat: model, modelId, windowTokens: 20_000 },
    summarizers: [createExtractiveSummarizer()],
  });
  return { agents, model };
}

describe("a turn whose calls wait for a decision", () => {
  it("ends, and any process lists the calls with what the person needs to know", async () => {
    const store = await waitingStore();
    const session = await program(store).open();
    expect(session.pendingApprovals).toEqual([
      {
        callId: "call-A",
        tool: "refund",
        arguments: { order: "A" },
        facts: { order: "A" },
        askedAtMs: expect.any(Number),
        expiresAtMs: null,
        turnId: expect.any(String),
      },
      expect.objectContaining({ callId: "call-B", facts: { order: "B" } }),
    ]);
    expect(session.interruptedTurn).toBeNull();
  });

  it("emits the calls for a supervisor, and the list of sessions counts them", async () => {
    const store = createMemoryStore();
    const { open: enter, fixture } = program(store, {}, { calls });
    await (await enter()).runTurn("Pay both back");
    const event = fixture.events.find(({ name }) => name === "approval.waiting");
    expect(event).toMatchObject({ approvals: [{ callId: "call-A" }, { callId: "call-B" }] });
    expect((await fixture.sessions.list()).sessions).toMatchObject([{ pendingApprovals: 2 }]);
  });

  it("runs what another process approves, once, and the rest keeps waiting", async () => {
    const store = await waitingStore();
    const second = program(store);
    const session = await second.open();
    const turn = await session.resume({ approvals: { "call-A": true } });
    expect([turn.outcome, second.paid, second.asked]).toEqual(["waiting", ["A"], []]);
    expect(session.pendingApprovals.map(({ callId }) => callId)).toEqual(["call-B"]);
    const third = program(store);
    const done = await (await third.open()).resume({ approvals: { "call-B": { refuse: "Too much." } } });
    expect([done.outcome, done.text, third.paid]).toEqual(["done", "Done.", []]);
    expect(resultsIn(third.fixture)).toEqual([expect.stringContaining("paid A"), expect.stringContaining("Too much.")]);
    expect((await third.fixture.sessions.list()).sessions).toMatchObject([{ pendingApprovals: 0 }]);
  });

  it("stores each decision before its tool runs", async () => {
    const store = await waitingStore();
    const second = program(store);
    await (await second.open()).resume({ approvals: { "call-A": { approve: { by: "person" } }, "call-B": true } });
    const kinds = (await second.fixture.records()).map(({ record }) => {
      const data = record["data"] as { readonly decision?: string; readonly callId?: string } | undefined;
      const { toolCallId } = (record["message"] ?? {}) as { readonly toolCallId?: string };
      return toolCallId ?? (data?.decision === undefined ? "" : `${data.decision} ${data.callId}`);
    });
    expect(kinds.indexOf("once call-A")).toBeGreaterThan(0);
    expect(kinds.indexOf("call-A")).toBeGreaterThan(kinds.indexOf("once call-A"));
    expect(kinds.indexOf("call-B")).toBeGreaterThan(kinds.indexOf("once call-B"));
  });

  it("waits again when nobody decided", async () => {
    const store = await waitingStore();
    const second = program(store);
    const session = await second.open();
    expect((await session.resume()).outcome).toBe("waiting");
    expect(session.pendingApprovals).toHaveLength(2);
    expect([second.paid, second.asked, second.fixture.model.requests.length]).toEqual([[], [], 0]);
  });

  it("lets the other calls of the reply run and keep their results", async () => {
    const store = createMemoryStore();
    const first = program(
      store,
      { approveTool: ({ id }) => (id === "call-B" ? { wait: undefined } : "unasked") },
      { calls },
    );
    const turn = await (await first.open()).runTurn("Pay both back");
    expect([turn.outcome, first.paid]).toEqual(["waiting", ["A"]]);
    const second = program(store);
    await (await second.open()).resume({ approvals: { "call-B": true } });
    expect([second.paid, resultsIn(second.fixture).length]).toEqual([["B"], 2]);
  });

  it("is decided on once: another decision is refused", async () => {
    const store = await waitingStore();
    const session = await program(store).open();
    await session.resume({ approvals: { "call-A": true } });
    const late = await program(store).open();
    await expect(late.resume({ approvals: { "call-A": true } })).rejects.toMatchObject({ code: "APPROVAL_DECIDED" });
    await expect(late.resume({ approvals: { none: true } })).rejects.toMatchObject({ code: "APPROVAL_DECIDED" });
  });

  it("runs the tool in one of two processes that approve at once", async () => {
    const store = await waitingStore();
    const both = [program(store), program(store)];
    const approvals = { "call-A": true, "call-B": true } as const;
    const sessions = await Promise.all(both.map((one) => one.open()));
    const outcomes = await Promise.allSettled(sessions.map((session) => session.resume({ approvals })));
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(both.flatMap(({ paid }) => paid).toSorted()).toEqual(["A", "B"]);
  });

  it.each([undefined, "k"])("is refused by a new message, as one fact, with the key %s", async (idempotencyKey) => {
    const store = await waitingStore();
    const second = program(store);
    const session = await second.open();
    const options = idempotencyKey === undefined ? {} : { idempotencyKey };
    expect((await session.runTurn("Never mind", options)).outcome).toBe("done");
    const fact = expect.stringContaining("The user answered instead of deciding");
    expect(resultsIn(second.fixture)).toEqual([fact, fact]);
    expect([second.paid, session.pendingApprovals]).toEqual([[], []]);
  });

  it("rejects a new message where that is asked for, and stores nothing", async () => {
    const store = await waitingStore();
    const second = program(store);
    const session = await second.open();
    const before = (await second.fixture.records()).length;
    await expect(session.runTurn("Hello?", { whenWaiting: "reject" })).rejects.toMatchObject({
      code: "APPROVAL_PENDING",
    });
    expect((await second.fixture.records()).length).toBe(before);
    expect(session.pendingApprovals).toHaveLength(2);
  });

  it("returns the waiting turn for its idempotency key", async () => {
    const store = createMemoryStore();
    const first = program(store, {}, { calls });
    const session = await first.open();
    await session.runTurn("Pay both back", { idempotencyKey: "k" });
    expect(await session.runTurn("Pay both back", { idempotencyKey: "k" })).toMatchObject({
      outcome: "waiting",
      replayed: true,
    });
  });

  it("keeps waiting when the turn that resumes it is aborted", async () => {
    const store = await waitingStore();
    const second = program(store);
    const session = await second.open();
    const stream = session.streamResume({ approvals: { "call-A": true } });
    // The reader leaves while the tool runs.
    for await (const event of stream) if (event.name === "tool.started") break;
    expect((await stream.result).outcome).toBe("aborted");
    expect(session.pendingApprovals.map(({ callId }) => callId)).toEqual(["call-B"]);
    expect((await second.fixture.sessions.list()).sessions).toMatchObject([{ pendingApprovals: 1 }]);
    await expect(session.runTurn("Hello?", { whenWaiting: "reject" })).rejects.toMatchObject({
      code: "APPROVAL_PENDING",
    });
    const third = program(store);
    expect((await (await third.open()).runTurn("Never mind")).outcome).toBe("done");
    expect(resultsIn(third.fixture)[1]).toContain("The user answered instead of deciding");
  });

  it("is refused in a fork, and can be decided on in its own session only", async () => {
    const store = await waitingStore();
    const second = program(store);
    const row = await second.fixture.sessions.fork(key);
    const fork = await second.fixture.sessions.open(row.key);
    expect(fork.pendingApprovals).toEqual([]);
    await expect(fork.resume({ approvals: { "call-A": true } })).rejects.toMatchObject({ code: "APPROVAL_DECIDED" });
    expect((await fork.resume()).outcome).toBe("done");
    expect(second.paid).toEqual([]);
    for (const result of resultsIn(second.fixture)) expect(result).toContain("It was not run.");
    expect((await second.open()).pendingApprovals).toHaveLength(2);
  });

  it("is refused in a fork that a program without a handle continues", async () => {
    const store = await waitingStore();
    const second = program(store);
    const row = await second.fixture.sessions.fork(key);
    const ref = sessionRef({ key: row.key });
    const ports = { clock: systemClock, random: systemRandom };
    await leaseTurn(store, ref, { ...ports, owner: "other", leaseMs: 30_000, drafts: [userMessage("Hello?")] });
    const texts = (await readWindow(store, ref)).records.map(({ record }) => JSON.stringify(record));
    expect(texts.filter((text) => text.includes("The call was not run."))).toHaveLength(2);
  });

  it("is over after a reset, and after its session was restored", async () => {
    const store = await waitingStore();
    const second = program(store);
    const session = await second.open();
    const { sessionId } = session;
    await session.reset();
    expect(session.pendingApprovals).toEqual([]);
    await second.fixture.sessions.rename(key, { key: "elsewhere" });
    const restored = await second.fixture.sessions.restore(sessionId);
    expect(restored.pendingApprovals).toBe(0);
    const again = await second.fixture.sessions.open(restored.key);
    expect(again.pendingApprovals).toEqual([]);
    expect((await again.resume()).outcome).toBe("done");
    expect(second.paid).toEqual([]);
  });

  it("is over when a due reset comes before the next message, and its session cannot be decided on", async () => {
    const store = await waitingStore();
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + 2 * 60 * 60_000 };
    const reset = readResetPolicy({ reset: { mode: "idle", idleMinutes: 30 } });
    const second = program(store, { clock, reset });
    const session = await second.open();
    const { sessionId } = session;
    expect(session.pendingApprovals).toHaveLength(2);
    expect((await session.runTurn("Hello")).outcome).toBe("done");
    expect(session.sessionId).not.toBe(sessionId);
    const late = { "call-A": true } as const;
    await expect(session.resume({ approvals: late })).rejects.toMatchObject({ code: "APPROVAL_DECIDED" });
    await second.fixture.sessions.rename(key, { key: "elsewhere" });
    const restored = await second.fixture.sessions.restore(sessionId);
    const again = await second.fixture.sessions.open(restored.key);
    expect(again.pendingApprovals).toEqual([]);
    await expect(again.resume({ approvals: late })).rejects.toMatchObject({ code: "APPROVAL_DECIDED" });
    expect(second.paid).toEqual([]);
  });

  it("is not covered by a compaction", async () => {
    const store = createMemoryStore();
    const first = program(store, {}, "One.", "Two.", "Three.", { calls });
    const session = await first.open();
    for (const text of ["a", "b", "c"]) await session.runTurn(text.repeat(2000));
    await session.runTurn("Pay both back");
    await first.fixture.sessions.close();
    const { agents, model } = agentProgram(store);
    const agent = await agents.open(key);
    expect((await agent.compact()).kind).toBe("compacted");
    expect(agent.pendingApprovals).toHaveLength(2);
    expect((await agents.list()).sessions).toMatchObject([{ pendingApprovals: 2 }]);
    await agent.resume({ approvals: { "call-A": { refuse: "No." }, "call-B": { refuse: "No." } } });
    expect(resultsIn({ model })).toHaveLength(2);
    await agents.close();
  });

  it("is over after a rewind", async () => {
    const store = await waitingStore();
    const second = program(store);
    const session = await second.open();
    const records = await second.fixture.records();
    const { drafts, options } = planRewind(records, session.head.headId, records[1]?.id ?? "");
    await store.append(session.ref, drafts, options);
    await session.refresh();
    expect(session.pendingApprovals).toEqual([]);
    expect((await second.fixture.sessions.list()).sessions).toMatchObject([{ pendingApprovals: 0 }]);
  });

  it.each([...historyTargets])("leaves a history that is valid for %s", async (_name, target) => {
    const { fixture } = program(await waitingStore());
    const history = createHistory(target);
    history.append(await fixture.records());
    const { messages } = history.render();
    // The reply is not sent: a made-up result would answer its call before the person does.
    expect(messages).toHaveLength(1);
    expect(target.validate(messages)).toEqual([]);
  });
});

describe("a process that died at the question", () => {
  const owners = (self: string) => ({
    self,
    stateOf: (other: string) => (other === self ? "self" : "gone") as "gone",
  });

  async function left(): Promise<SessionStore> {
    const store = createMemoryStore();
    const hook = { approveTool: () => new Promise<never>(() => {}), owners: owners("first") };
    const first = program(store, hook, { calls });
    const lost = (await first.open()).runTurn("Pay both back");
    lost.catch(() => {});
    await expect.poll(() => first.fixture.events.some(({ name }) => name === "call.finished")).toBe(true);
    await expect
      .poll(async () =>
        (await first.fixture.records()).some(({ record }) => record["customType"] === "throughline.call"),
      )
      .toBe(true);
    return store;
  }

  it("leaves calls that the next process lists, and asks about again", async () => {
    const store = await left();
    const second = program(store, {
      approveTool: ({ id }) => id === "call-A" || { refuse: "No." },
      owners: owners("2"),
    });
    const session = await second.open();
    expect(session.interruptedTurn?.pendingApprovals.map(({ callId }) => callId)).toEqual(["call-A", "call-B"]);
    expect((await session.resume()).outcome).toBe("done");
    expect(second.paid).toEqual(["A"]);
    expect(resultsIn(second.fixture)).toEqual([expect.stringContaining("paid A"), expect.stringContaining("No.")]);
  });

  it("leaves calls that the next process decides on without asking", async () => {
    const store = await left();
    const second = program(store, { owners: owners("2") });
    const session = await second.open();
    const turn = await session.resume({ approvals: { "call-A": true } });
    expect([turn.outcome, second.paid, second.asked]).toEqual(["waiting", ["A"], []]);
    expect(session.pendingApprovals.map(({ callId }) => callId)).toEqual(["call-B"]);
  });
});
