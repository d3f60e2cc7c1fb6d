import { describe, expect, it } from "vitest";
import { systemClock, updateEntry } from "@throughline/core/internal";
import { decideApproval, listApprovals } from "@throughline/session/internal";
import { replaceMembers } from "@throughline/test-kit";
import { createMemoryStore } from "@throughline/store-memory";
import { calls, program, resultsIn, waitingStore } from "./waiting-program.ts";

describe("a decision outside of a turn", () => {
  const ports = { clock: systemClock };

  it("is carried out by the turn that resumes, and recorded once", async () => {
    const store = await waitingStore();
    const { ref } = await program(store).open();
    await decideApproval(store, ref, { ...ports, callId: "call-A", answer: true });
    await decideApproval(store, ref, { ...ports, callId: "call-B", answer: { refuse: "Too much." } });
    const second = program(store);
    const session = await second.open();
    expect(session.pendingApprovals).toEqual([]);
    expect((await session.resume()).outcome).toBe("done");
    expect(second.paid).toEqual(["A"]);
    expect(resultsIn(second.fixture)).toEqual([
      expect.stringContaining("paid A"),
      expect.stringContaining("Too much."),
    ]);
    const decisions = (await second.fixture.records()).flatMap(({ record }) => {
      const { decision } = (record["data"] ?? {}) as { readonly decision?: string };
      return decision === undefined ? [] : [decision];
    });
    expect(decisions).toEqual(["wait", "wait", "once", "no"]);
  });

  it("holds when it came first, also against one that comes at the same time", async () => {
    const store = await waitingStore();
    const { ref } = await program(store).open();
    const answers = [true, { refuse: "No." }] as const;
    const outcomes = await Promise.allSettled(
      answers.map((answer) => decideApproval(store, ref, { ...ports, callId: "call-A", answer })),
    );
    const isFirst = outcomes[0]?.status === "fulfilled";
    expect(outcomes[isFirst ? 1 : 0]).toMatchObject({ reason: { code: "APPROVAL_DECIDED" } });
    const again = { ...ports, callId: "call-A", answer: isFirst ? answers[0] : answers[1] };
    expect(await decideApproval(store, ref, again)).toMatchObject({ replayed: true });
    const second = program(store);
    const approvals = { "call-B": { refuse: "No." } };
    await (await second.open()).resume({ approvals });
    expect(second.paid).toEqual(isFirst ? ["A"] : []);
    expect(await decideApproval(store, ref, again)).toMatchObject({ replayed: true });
  });

  it("holds against a resumed turn that has another one and did not see it yet", async () => {
    const store = await waitingStore();
    const second = program(store);
    const session = await second.open();
    const append = store.append.bind(store);
    let isLate = true;
    // The decision of another process comes right before the turn begins.
    const racing = replaceMembers(store, {
      append: async (...args: Parameters<typeof append>) => {
        if (isLate && args[2]?.turn?.action === "open") {
          isLate = false;
          await decideApproval(store, session.ref, { ...ports, callId: "call-A", answer: { refuse: "No." } });
        }
        return append(...args);
      },
    });
    const third = program(racing);
    const late = await third.open();
    await late.resume({ approvals: { "call-A": true, "call-B": true } }).catch((error: unknown) => {
      expect(error).toMatchObject({ code: "APPROVAL_DECIDED" });
    });
    expect(third.paid).not.toContain("A");
  });

  it("waits for the end of a running turn", async () => {
    const store = createMemoryStore();
    const first = program(store, { approveTool: () => new Promise<never>(() => {}) }, { calls });
    const session = await first.open();
    session.runTurn("Pay both back").catch(() => {});
    await expect.poll(() => first.fixture.events.some(({ name }) => name === "call.finished")).toBe(true);
    const decide = { ...ports, callId: "call-A", answer: true } as const;
    await expect(decideApproval(store, session.ref, decide)).rejects.toMatchObject({ code: "SESSION_BUSY" });
    expect(await listApprovals(store, session.ref, systemClock)).toEqual([]);
    // Its lease is over, so its process counts as gone.
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + 60_000 };
    expect(await listApprovals(store, session.ref, clock)).toHaveLength(2);
    await decideApproval(store, session.ref, { ...decide, clock });
    const second = program(store);
    const turn = await (await second.open()).resume({ approvals: { "call-B": { refuse: "No." } } });
    expect([turn.outcome, second.paid]).toEqual(["done", ["A"]]);
  });

  it("counts after a turn that was denied, and the list of sessions shows the calls meanwhile", async () => {
    const store = await waitingStore();
    const second = program(store);
    const session = await second.open();
    await updateEntry(store, session.ref, (entry) => ({ ...entry, sendPolicy: "deny" }));
    expect((await session.resume()).outcome).toBe("denied");
    expect((await second.fixture.sessions.list()).sessions).toMatchObject([{ pendingApprovals: 2 }]);
    await decideApproval(store, session.ref, { ...ports, callId: "call-A", answer: true });
    await decideApproval(store, session.ref, { ...ports, callId: "call-B", answer: true });
    await updateEntry(store, session.ref, (entry) => ({ ...entry, sendPolicy: "allow" }));
    expect((await (await program(store).open()).resume()).outcome).toBe("done");
    expect((await second.fixture.sessions.list()).sessions).toMatchObject([{ pendingApprovals: 0 }]);
  });

  it("is refused for a call that does not wait", async () => {
    const store = await waitingStore();
    const { ref } = await program(store).open();
    await expect(decideApproval(store, ref, { ...ports, callId: "none", answer: true })).rejects.toMatchObject({
      code: "APPROVAL_DECIDED",
    });
  });
});
