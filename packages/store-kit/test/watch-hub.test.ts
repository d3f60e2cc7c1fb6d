import { setTimeout as pause } from "node:timers/promises";
import { type SessionRef, ThroughlineError } from "@throughline/core";
import { systemClock as clock } from "@throughline/core/internal";
import type { Watched } from "../src/watch-hub.ts";
import { WatchHub } from "@throughline/store-kit";
import { describe, expect, it } from "vitest";

interface Seen {
  readonly name: string;
}

const passing = (): ThroughlineError => new ThroughlineError("STORE_UNREACHABLE", "not now", {});

function refOf(index: number): SessionRef {
  return { namespace: "", agentId: "main", key: `${index}` };
}

const forever = new AbortController().signal;

describe("WatchHub", () => {
  it("looks once for all who follow, and wakes those for whom there is something", async () => {
    const looks: string[][] = [];
    const found: string[] = [];
    const hub = new WatchHub<Seen>({
      clock,
      pollMs: 1,
      look: (watched) => {
        looks.push(watched.map(({ state }) => state.name));
        const [name] = found;
        return watched.filter(({ state }) => state.name === name);
      },
    });
    const bells = ["a", "b", "c"].map((name) => hub.follow(name, { name }, forever));
    const woken: string[] = [];
    const rung = bells.map(async (bell, index) => {
      await bell.ring();
      woken.push("abc".charAt(index));
    });
    while (looks.length < 3) await pause(1);
    expect(woken).toEqual([]);
    found.push("b");
    await rung[1];
    expect(woken).toEqual(["b"]);
    expect(new Set(looks.map((look) => look.join()))).toEqual(new Set(["a,b,c"]));
    for (const name of "abc") hub.wake(name);
    await Promise.all(rung);
    for (const bell of bells) bell.end();
  });

  it("wakes at once whoever follows what this handle has written, and forgets no ring before it is waited for", async () => {
    const hub = new WatchHub<Seen>({ clock, pollMs: 600_000, look: () => [] });
    const bells = ["a", "a", "b"].map((name) => hub.follow(name, { name }, forever));
    hub.wake("a");
    await Promise.all([bells[0]?.ring(), bells[1]?.ring()]);
    bells[0]?.reset();
    const unrung = [bells[0]?.ring(), bells[2]?.ring()].map(async (ring) => {
      await ring;
      return "rung";
    });
    expect(await Promise.race([...unrung, pause(20, "silent")])).toBe("silent");
    for (const name of "ab") hub.wake(name);
    expect(await Promise.all(unrung)).toEqual(["rung", "rung"]);
    for (const bell of bells) bell.end();
  });

  it("stops looking when nobody follows, and begins again with the next one", async () => {
    let looks = 0;
    const hub = new WatchHub<Seen>({ clock, pollMs: 2, look: () => ((looks += 1), []) });
    for (let round = 0; round < 2; round++) {
      const bell = hub.follow("a", { name: "a" }, forever);
      const from = looks;
      while (looks === from) await pause(1);
      bell.end();
      const after = looks;
      await pause(30);
      expect(looks - after).toBeLessThanOrEqual(1);
    }
  });

  it("keeps one poll when the last one leaves and another comes in the same moment", async () => {
    let underWay = 0;
    let most = 0;
    const hub = new WatchHub<Seen>({
      clock,
      pollMs: 1,
      look: async () => {
        most = Math.max(most, ++underWay);
        await pause(5);
        underWay -= 1;
        return [];
      },
    });
    for (let round = 0; round < 20; round++) {
      hub.follow("a", { name: "a" }, forever).end();
      const bell = hub.follow("b", { name: "b" }, forever);
      await pause(3);
      bell.end();
    }
    expect(most).toBe(1);
  });

  it("repeats a look that failed for a reason that may pass, and wakes nobody for it", { tags: ["slow"] }, async () => {
    let looks = 0;
    const hub = new WatchHub<Seen>({
      clock,
      pollMs: 1,
      look: (watched): readonly Watched<Seen>[] => {
        looks += 1;
        if (looks <= 3) throw passing();
        return looks === 5 ? watched : [];
      },
    });
    const bell = hub.follow("a", { name: "a" }, forever);
    await bell.ring();
    expect(looks).toBe(5);
    bell.end();
  });

  it(
    "ends every watch with the error of a look that stays, or that no repetition helps",
    { tags: ["slow"] },
    async () => {
      for (const error of [passing(), new Error("the disk is gone")]) {
        let looks = 0;
        const hub = new WatchHub<Seen>({
          clock,
          pollMs: 1,
          timeoutMs: 200,
          mostReads: 1,
          look: () => {
            looks += 1;
            throw error;
          },
        });
        const bells = ["a", "b"].map((name) => hub.follow(name, { name }, forever));
        const rings = bells.map((bell) => bell.ring());
        for (const ring of rings) await expect(ring).rejects.toBe(error);
        expect(looks).toBeGreaterThanOrEqual(error instanceof ThroughlineError ? 3 : 1);
        expect(looks).toBeLessThan(10);
        for (const bell of bells) bell.end();
      }
    },
  );

  it("lets a few watches read at a time, takes out those that are aborted, and repeats what may pass", async () => {
    const hub = new WatchHub<Seen>({ clock, pollMs: 600_000, mostReads: 2, look: () => [] });
    let inside = 0;
    let most = 0;
    let failures = 3;
    const controller = new AbortController();
    const read = (signal: AbortSignal): Promise<string> =>
      hub.read(async () => {
        most = Math.max(most, ++inside);
        await pause(1);
        inside -= 1;
        if (failures-- > 0) throw passing();
        return "read";
      }, signal);
    const reads = Array.from({ length: 100 }, (_, index) => read(index % 2 === 0 ? forever : controller.signal));
    expect(hub.isFree).toBe(false);
    controller.abort();
    const results = await Promise.allSettled(reads);
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(50);
    const refusals = results.flatMap((each) => (each.status === "rejected" ? [each.reason as ThroughlineError] : []));
    expect(new Set(refusals.map(({ code }) => code))).toEqual(new Set(["ABORTED"]));
    expect(most).toBe(2);
    expect(hub.isFree).toBe(true);
  });

  it("finds the starts of all that begin together in few batches, and each hears of its own", async () => {
    const batches: number[] = [];
    const hub = new WatchHub<Seen>({
      clock,
      pollMs: 600_000,
      look: () => [],
      start: async (refs) => {
        batches.push(refs.length);
        await pause(1);
        if (batches.length === 1) throw passing();
        return refs.map(({ key }) => (key === "7" ? null : { key: `session ${key}`, lastSeq: Number(key) }));
      },
    });
    const controller = new AbortController();
    const starts = Array.from({ length: 5000 }, (_, index) =>
      hub.begin(refOf(index), index === 9 ? controller.signal : forever),
    );
    controller.abort();
    const results = await Promise.allSettled(starts);
    expect(results[9]).toMatchObject({ status: "rejected", reason: { code: "ABORTED" } });
    expect(results[7]).toEqual({ status: "fulfilled", value: null });
    expect(results[4999]).toEqual({ status: "fulfilled", value: { key: "session 4999", lastSeq: 4999 } });
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(4999);
    expect(batches).toEqual([1999, 1999, 2000, 1000]);
  });

  it("ends all with one error: who waits, who begins, who has no turn yet, and who comes later", async () => {
    const hub = new WatchHub<Seen>({
      clock,
      pollMs: 600_000,
      look: () => [],
      start: () => Promise.reject(passing()),
    });
    const bell = hub.follow("a", { name: "a" }, forever);
    const reading = hub.read(() => Promise.reject(passing()), forever);
    const waiting = [bell.ring(), reading, hub.read(() => "read", forever), hub.begin(refOf(1), forever)];
    const settled = Promise.allSettled(waiting);
    await pause(20);
    const closed = new ThroughlineError("STORE_CLOSED", "closed", {});
    hub.end(closed);
    expect(await settled).toEqual(waiting.map(() => ({ status: "rejected", reason: closed })));
    await expect(hub.follow("b", { name: "b" }, forever).ring()).rejects.toBe(closed);
  });

  it("ends a wait by its signal, also one that was aborted before", async () => {
    const hub = new WatchHub<Seen>({ clock, pollMs: 600_000, look: () => [] });
    const controller = new AbortController();
    const bell = hub.follow("a", { name: "a" }, controller.signal);
    const rung = bell.ring();
    controller.abort();
    await rung;
    bell.end();
    const late = hub.follow("a", { name: "a" }, AbortSignal.abort());
    await late.ring();
    late.end();
  });

  it("looks seldom when nothing happens", { tags: ["slow"] }, async () => {
    let looks = 0;
    const hub = new WatchHub<Seen>({ clock, pollMs: 100, idleMs: 600_000, look: () => ((looks += 1), []) });
    const bell = hub.follow("a", { name: "a" }, forever);
    while (looks < 20) await pause(50);
    await pause(400);
    expect(looks).toBe(20);
    hub.lookSoon();
    while (looks < 21) await pause(5);
    bell.end();
  });
});
