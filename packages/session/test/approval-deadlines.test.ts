import { describe, expect, it } from "vitest";
import type { Clock, SessionStore } from "@throughline/core";
import { countWaitingCalls, systemClock } from "@throughline/core/internal";
import { decideApproval, listApprovals } from "@throughline/session/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { calls, program, resultsIn, waitingStore } from "./waiting-program.ts";
import { key } from "./session-fixture.ts";

const ref = { namespace: "", agentId: "main", key };

/** The time of a process, which may differ from that of another one. */
function clockAt(nowMs: () => number): Clock {
  return { nowMs, sleep: (delayMs, signal) => systemClock.sleep(delayMs, signal) };
}

const start = Date.now();
const deadline = start + 60_000;
const before = clockAt(() => start + 1000);
const after = clockAt(() => deadline);

/** A store in which call A waits until the deadline, and call B without one. */
async function deadlineStore(options: { readonly both?: boolean } = {}): Promise<SessionStore> {
  const store = createMemoryStore();
  const first = program(
    store,
    {
      clock: clockAt(() => start),
      approveTool: ({ id }) =>
        id === "call-A" || options.both === true ? { wait: {}, expiresAtMs: deadline } : { wait: {} },
    },
    { calls },
  );
  expect((await (await first.open()).runTurn("Pay both back")).outcome).toBe("waiting");
  const event = first.fixture.events.find(({ name }) => name === "approval.waiting");
  expect(event).toMatchObject({ approvals: [{ callId: "call-A", expiresAtMs: deadline }, { callId: "call-B" }] });
  await first.fixture.sessions.close();
  return store;
}

async function decisionsIn(store: SessionStore): Promise<readonly unknown[]> {
  const decisions: unknown[] = [];
  for await (const { records } of store.read(ref))
    for (const { record } of records) {
      const { callId, decision, by } = (record["data"] ?? {}) as Readonly<Record<string, unknown>>;
      if (decision !== undefined && decision !== "wait") decisions.push([callId, decision, by]);
    }
  return decisions;
}

const idsOf = (approvals: readonly { readonly callId: string }[]): readonly string[] =>
  approvals.map(({ callId }) => callId);

describe("a question with a deadline", () => {
  it("waits before it, and is in no list after it, in every process", async () => {
    const store = await deadlineStore();
    const early = await program(store, { clock: before }).open();
    const late = await program(store, { clock: after }).open();
    expect([idsOf(early.pendingApprovals), idsOf(late.pendingApprovals)]).toEqual([["call-A", "call-B"], ["call-B"]]);
    expect(idsOf(await listApprovals(store, ref, before))).toEqual(["call-A", "call-B"]);
    expect(idsOf(await listApprovals(store, ref, after))).toEqual(["call-B"]);
    const state = await store.load(ref);
    if (state === null) throw new Error("the session is there");
    expect([countWaitingCalls(state, deadline - 1), countWaitingCalls(state, deadline)]).toEqual([2, 1]);
  });

  it("is refused by the next turn, in one record, and the model reads why", async () => {
    const store = await deadlineStore({ both: true });
    const second = program(store, { clock: after });
    const session = await second.open();
    expect((await session.resume()).outcome).toBe("done");
    expect(await decisionsIn(store)).toEqual([
      ["call-A", "no", "deadline"],
      ["call-B", "no", "deadline"],
    ]);
    const text = `before ${new Date(deadline).toISOString()}. It was not run.`;
    expect(resultsIn(second.fixture)).toEqual([expect.stringContaining(text), expect.stringContaining(text)]);
    expect([second.paid, second.asked]).toEqual([[], []]);
  });

  it("leaves the other calls of the reply waiting, and their decisions hold", async () => {
    const store = await deadlineStore();
    const second = program(store, { clock: after });
    const session = await second.open();
    expect((await session.resume()).outcome).toBe("waiting");
    expect([await decisionsIn(store), idsOf(session.pendingApprovals)]).toEqual([
      [["call-A", "no", "deadline"]],
      ["call-B"],
    ]);
    expect((await second.fixture.sessions.list()).sessions).toMatchObject([{ pendingApprovals: 1 }]);
    await session.resume({ approvals: { "call-B": true } });
    expect(second.paid).toEqual(["B"]);
  });

  it("takes no late decision: 409 in a turn and outside of it, and nothing is stored", async () => {
    const store = await deadlineStore();
    const second = program(store, { clock: after });
    const session = await second.open();
    const approvals = { "call-A": true } as const;
    await expect(session.resume({ approvals })).rejects.toMatchObject({ code: "APPROVAL_DECIDED" });
    for (const answer of [true, { refuse: "No." }] as const)
      await expect(decideApproval(store, ref, { callId: "call-A", answer, clock: after })).rejects.toMatchObject({
        code: "APPROVAL_DECIDED",
        message: expect.stringContaining(new Date(deadline).toISOString()) as string,
      });
    expect([await decisionsIn(store), second.paid]).toEqual([[], []]);
  });

  it("does not undo a decision in time, also for a process whose clock is ahead", async () => {
    const store = await deadlineStore();
    await decideApproval(store, ref, { callId: "call-A", answer: true, clock: before });
    const state = await store.load(ref);
    if (state === null) throw new Error("the session is there");
    expect(countWaitingCalls(state, deadline)).toBe(1);
    const second = program(store, { clock: after });
    await (await second.open()).resume({ approvals: { "call-B": true } });
    expect(second.paid.toSorted()).toEqual(["A", "B"]);
  });

  it("is decided once by two processes of which one thinks that it is over", async () => {
    for (let round = 0; round < 20; round++) {
      const store = await deadlineStore({ both: true });
      const [ahead, behind] = [program(store, { clock: after }), program(store, { clock: before })];
      const [one, other] = [await ahead.open(), await behind.open()];
      const approvals = { "call-A": true, "call-B": true } as const;
      const ended = await Promise.allSettled([one.resume(), other.resume({ approvals })]);
      expect(ended.filter(({ status }) => status === "fulfilled").length).toBeGreaterThan(0);
      const decisions = await decisionsIn(store);
      expect(decisions).toHaveLength(2);
      const isApproved = JSON.stringify(decisions).includes("once");
      expect([ahead.paid, behind.paid.length]).toEqual([[], isApproved ? 2 : 0]);
    }
  });

  it("does not stand against a new message, and the model reads that it expired", async () => {
    const store = await deadlineStore();
    const second = program(store, { clock: after });
    const session = await second.open();
    await session.runTurn("Never mind");
    expect(resultsIn(second.fixture)).toEqual([
      expect.stringContaining("Nobody decided on this call before"),
      expect.stringContaining("The user answered instead of deciding."),
    ]);
    const expired = await deadlineStore({ both: true });
    const third = program(expired, { clock: after });
    await expect((await third.open()).runTurn("Hello", { whenWaiting: "reject" })).resolves.toMatchObject({
      outcome: "done",
    });
  });

  it.each([Number.NaN, "soon", -1, 1e300])(
    "with the deadline %s refuses the call instead of waiting for ever",
    async (expiresAtMs) => {
      const first = program(
        createMemoryStore(),
        { approveTool: () => ({ wait: {}, expiresAtMs: expiresAtMs as number }) },
        { calls },
        "Done.",
      );
      expect((await (await first.open()).runTurn("Pay both back")).outcome).toBe("done");
      expect(resultsIn(first.fixture)[0]).toContain("expiresAtMs");
    },
  );
});

describe("a question that the program takes back", () => {
  it("is refused, and the model reads it; a late decision is refused", async () => {
    const store = await waitingStore();
    const session = await program(store).open();
    await session.withdrawApproval("call-A");
    await session.withdrawApproval("call-A");
    await session.withdrawApproval("call-B", "The order is closed.");
    expect(session.pendingApprovals).toEqual([]);
    expect(await decisionsIn(store)).toEqual([
      ["call-A", "cancel", "program"],
      ["call-B", "cancel", "program"],
    ]);
    const late = { callId: "call-A", answer: true, clock: systemClock } as const;
    await expect(decideApproval(store, ref, late)).rejects.toMatchObject({ code: "APPROVAL_DECIDED" });
    const second = program(store);
    expect((await (await second.open()).resume()).outcome).toBe("done");
    expect(resultsIn(second.fixture)).toEqual([
      expect.stringContaining("The program took its question back."),
      expect.stringContaining("The order is closed."),
    ]);
    expect(second.paid).toEqual([]);
  });

  it("keeps a decision that came before, and needs a call that waits", async () => {
    const store = await waitingStore();
    const session = await program(store).open();
    await decideApproval(store, ref, { callId: "call-A", answer: true, clock: systemClock });
    await expect(session.withdrawApproval("call-A")).rejects.toMatchObject({ code: "APPROVAL_DECIDED" });
    await expect(session.withdrawApproval("none")).rejects.toMatchObject({ code: "APPROVAL_DECIDED" });
    await expect(session.withdrawApproval("")).rejects.toMatchObject({ code: "INPUT_INVALID" });
  });

  it("has its words in the result also after a new message", async () => {
    const store = await waitingStore();
    const second = program(store);
    const session = await second.open();
    await session.withdrawApproval("call-A", "The order is closed.");
    await session.runTurn("And now?");
    expect(resultsIn(second.fixture)[0]).toContain("The order is closed.");
  });
});
