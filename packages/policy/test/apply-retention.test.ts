import { describe, expect, it } from "vitest";
import { sessionRef } from "@throughline/core";
import type { Clock, SessionState, SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { applyRetention, planRetention } from "@throughline/policy";
import { readRetained } from "../src/apply-retention.ts";
import { createMemoryStore } from "@throughline/store-memory";

const { signal } = new AbortController();
const keyOf = (name: string): string => `agent:main:cli:direct:${name}`;
const refOf = (name: string): ReturnType<typeof sessionRef> => sessionRef({ key: keyOf(name) });

/** Sessions one millisecond apart, the last one the newest. */
async function storeWith(
  ...names: readonly string[]
): Promise<{ readonly store: SessionStore; readonly clock: Clock; readonly wait: () => void }> {
  let nowMs = 1_000_000;
  const clock = { ...systemClock, nowMs: () => nowMs };
  const wait = (): void => void (nowMs += 1);
  const store = createMemoryStore({ clock });
  for (const name of names) {
    wait();
    await store.save(refOf(name), { sessionId: name }, { ifRevision: null });
    await store.append(refOf(name), [{ type: "message", message: { role: "user", content: name } }]);
  }
  return { store, clock, wait };
}

async function* listed(store: SessionStore): AsyncGenerator<SessionState> {
  yield* (await store.list({ state: "any" })).sessions;
}

describe("applying a plan of retention", () => {
  it("archives what the plan names and skips a session that was used since", async () => {
    const { store, clock, wait } = await storeWith("one", "two", "three");
    const measured: string[] = [];
    const onMeasure = (key: string): number => measured.push(key);
    const options = { isMeasured: true, nowMs: clock.nowMs(), onMeasure, signal };
    const sessions = await readRetained(store, listed(store), options);
    expect(sessions.map(({ sessionId, isProtected }) => [sessionId, isProtected])).toEqual([
      ["three", true],
      ["two", false],
      ["one", false],
    ]);
    expect(sessions.every(({ sizeBytes }) => (sizeBytes ?? 0) > 50)).toBe(true);
    expect(measured.length).toBe(3);
    const plan = planRetention(sessions, { keep: 0 }, clock.nowMs());
    wait();
    await store.append(refOf("one"), [{ type: "message", message: { role: "user", content: "more" } }]);
    const started: string[] = [];
    const applied = await Array.fromAsync(
      applyRetention(store, sessions, plan, {
        clock,
        onStep: ({ sessionId }) => started.push(sessionId),
        signal,
      }),
    );
    expect(applied.map(({ ref, state }) => [ref.key, state])).toEqual([
      [keyOf("one"), "skipped"],
      [keyOf("two"), "done"],
    ]);
    expect(started).toEqual(["one", "two"]);
    const states = (await store.list({ state: "any", sort: "key" })).sessions;
    expect(states.map(({ sessionId, archived }) => [sessionId, archived])).toEqual([
      ["one", false],
      ["three", false],
      ["two", true],
    ]);
  });

  it("protects a session with an open turn, and ends at the signal", async () => {
    const { store, clock } = await storeWith("one", "two", "three");
    const leaseUntilMs = clock.nowMs() + 60_000;
    await store.append(refOf("one"), [], {
      turn: { action: "open", turnId: "t", owner: "test", leaseUntilMs, fence: 1 },
    });
    const options = { isMeasured: false, nowMs: clock.nowMs(), signal };
    const sessions = await readRetained(store, listed(store), options);
    const open = sessions.find(({ sessionId }) => sessionId === "one");
    expect([open?.isProtected, open?.sizeBytes]).toEqual([true, null]);
    const plan = planRetention(sessions, { keep: 0 }, clock.nowMs());
    const applying = applyRetention(store, sessions, plan, {
      clock,
      signal: AbortSignal.abort(new Error("stop")),
    });
    await expect(applying.next()).rejects.toMatchObject({ code: "ABORTED" });
  });
});
