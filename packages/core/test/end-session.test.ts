import { describe, expect, it } from "vitest";
import { type Clock, endSession, sessionRef, type SessionRef } from "@throughline/core";
import { archivedAtMs } from "../src/end-session.ts";
import { createMemoryStore } from "@throughline/store-memory";

const ref = sessionRef({ key: "agent:main:discord:direct:7" });

/** A clock whose sleep passes at once. */
function quickClock(): Clock & { readonly sleeps: number[] } {
  let nowMs = 1_790_000_000_000;
  const sleeps: number[] = [];
  return {
    sleeps,
    nowMs: () => nowMs,
    sleep: (durationMs) => {
      sleeps.push(durationMs);
      nowMs += durationMs;
      return Promise.resolve();
    },
  };
}

async function fixture(leaseMs: number) {
  const clock = quickClock();
  const store = createMemoryStore({ clock });
  await store.save(ref, { sessionId: "s" }, { ifRevision: null });
  if (leaseMs > 0) {
    const turn = {
      action: "open",
      turnId: "t",
      owner: "agent",
      leaseUntilMs: clock.nowMs() + leaseMs,
      fence: 1,
    } as const;
    await store.append(ref, [{ type: "message", message: { role: "user", content: "x" } }], { turn });
  }
  return { clock, store };
}

const archive: SessionRef = { ...ref, archiveId: "s" };

describe("ending a session", () => {
  it("notes in the archive when that was", async () => {
    const { clock, store } = await fixture(0);
    await endSession(store, ref, { clock });
    const archived = await store.load(archive);
    expect(archived?.archived).toBe(true);
    expect(archived === null ? null : archivedAtMs(archived.entry)).toBe(clock.nowMs());
    expect(clock.sleeps).toEqual([]);
  });

  it("leaves an archive as it is, and deletes it only when told to", async () => {
    const { clock, store } = await fixture(0);
    await endSession(store, ref, { clock });
    const before = await store.load(archive);
    await endSession(store, archive, { clock });
    expect(await store.load(archive)).toEqual(before);
    await endSession(store, archive, { clock, purge: true });
    expect(await store.load(archive)).toBeNull();
  });

  it("waits for a turn until its lease ran out, and says for whom once", async () => {
    const { clock, store } = await fixture(700);
    const owners: string[] = [];
    await endSession(store, ref, { clock, pollIntervalMs: 200, onWait: (owner) => void owners.push(owner) });
    expect(clock.sleeps).toEqual([200, 200, 200, 200]);
    expect(owners).toEqual(["agent"]);
  });

  it("refuses a session that stays in use, and changes nothing of it", async () => {
    const { clock, store } = await fixture(60_000);
    const before = await store.load(ref);
    await expect(endSession(store, ref, { clock, timeoutMs: 500 })).rejects.toMatchObject({ code: "SESSION_BUSY" });
    expect(clock.sleeps).toEqual([200, 200, 100]);
    expect(await store.load(ref)).toEqual(before);
  });
});
