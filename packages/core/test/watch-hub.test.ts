import { setTimeout as pause } from "node:timers/promises";
import { type Watched, WatchHub } from "@throughline/core/store";
import { describe, expect, it } from "vitest";

interface Seen {
  readonly name: string;
}

const forever = new AbortController().signal;

describe("WatchHub", () => {
  it("looks once for all who follow, and wakes those for whom there is something", async () => {
    const looks: string[][] = [];
    const found: string[] = [];
    const hub = new WatchHub<Seen>({
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
    hub.wakeAll();
    await Promise.all(rung);
    for (const bell of bells) bell.end();
  });

  it("wakes at once whoever follows what this handle has written, and forgets no ring before it is waited for", async () => {
    const hub = new WatchHub<Seen>({ pollMs: 600_000, look: () => [] });
    const bells = ["a", "a", "b"].map((name) => hub.follow(name, { name }, forever));
    hub.wake("a");
    await Promise.all([bells[0]?.ring(), bells[1]?.ring()]);
    bells[0]?.reset();
    const unrung = [bells[0]?.ring(), bells[2]?.ring()].map(async (ring) => {
      await ring;
      return "rung";
    });
    expect(await Promise.race([...unrung, pause(20, "silent")])).toBe("silent");
    hub.wakeAll();
    expect(await Promise.all(unrung)).toEqual(["rung", "rung"]);
    for (const bell of bells) bell.end();
  });

  it("stops looking when nobody follows, and begins again with the next one", async () => {
    let looks = 0;
    const hub = new WatchHub<Seen>({ pollMs: 2, look: () => ((looks += 1), []) });
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

  it("wakes everybody when a look fails, and goes on looking", async () => {
    let looks = 0;
    const hub = new WatchHub<Seen>({
      pollMs: 1,
      look: (watched): readonly Watched<Seen>[] => {
        looks += 1;
        if (looks === 1) throw new Error("the disk is gone");
        return looks === 5 ? watched : [];
      },
    });
    const bell = hub.follow("a", { name: "a" }, forever);
    await bell.ring();
    bell.reset();
    await bell.ring();
    expect(looks).toBeGreaterThanOrEqual(5);
    bell.end();
  });

  it("ends a wait by its signal, also one that was aborted before", async () => {
    const hub = new WatchHub<Seen>({ pollMs: 600_000, look: () => [] });
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

  it("looks seldom when nothing happens", async () => {
    let looks = 0;
    const hub = new WatchHub<Seen>({ pollMs: 100, idleMs: 600_000, look: () => ((looks += 1), []) });
    const bell = hub.follow("a", { name: "a" }, forever);
    while (looks < 20) await pause(50);
    await pause(400);
    expect(looks).toBe(20);
    hub.lookSoon();
    while (looks < 21) await pause(5);
    bell.end();
  });
});
