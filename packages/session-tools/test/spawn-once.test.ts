import { describe, expect, it } from "vitest";
import { resetSession, sessionRef, ThroughlineError, type SessionState, type SessionStore } from "@throughline/core";
import { systemRandom } from "@throughline/core/node";
import { createSessionTools } from "../src/index.ts";
import { openFixture, recordsOf, storeKinds, type ToolFixture } from "./tool-fixture.ts";

const main = "agent:main:main";
const task = { task: "Count the files.", label: "counter" };

/** A store whose process ends at its n-th call: before the call is done or after, and every later one fails. */
function ending(store: SessionStore, calls: number, isDone: boolean): { readonly store: SessionStore; made(): number } {
  let made = 0;
  const gone = (): ThroughlineError => new ThroughlineError("STORE_CLOSED", "the process is gone");
  const handler: ProxyHandler<SessionStore> = {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function" || typeof name === "symbol") return value;
      return (...args: unknown[]) => {
        made++;
        if (made > calls || (made === calls && !isDone)) {
          if (name === "read") throw gone();
          return Promise.reject(gone());
        }
        const result: unknown = Reflect.apply(value, target, args);
        return made < calls || name === "read" ? result : Promise.resolve(result).then(() => Promise.reject(gone()));
      };
    },
  };
  return { store: new Proxy(store, handler), made: () => made };
}

async function childrenOf({ store }: ToolFixture): Promise<readonly SessionState[]> {
  const { sessions } = await store.list({ state: "any", limit: 100 });
  return sessions.filter(({ entry }) => entry["spawnedBy"] === main);
}

describe.each(storeKinds)("a call of sessions_spawn made again, over %s", (_, open) => {
  it("after a crash at any step makes one child with one task [ISO-06]", async () => {
    const spawnLimits = { maxChildren: 100, maxTotal: 100 };
    await using fixture = await openFixture(open, { spawnLimits });
    await fixture.open(main);
    let steps = 0;
    let calls = 0;
    for (const isDone of [false, true]) {
      for (steps = 1; ; steps++) {
        const callId = `call_${++calls}`;
        const broken = ending(fixture.store, steps, isDone);
        const [spawn] = createSessionTools({ store: broken.store, spawnLimits });
        const call = { signal: new AbortController().signal, callId, ref: sessionRef({ key: main }) };
        await Promise.resolve(spawn?.run(task, call)).catch((error: unknown) =>
          expect(error).toMatchObject({ code: "STORE_CLOSED" }),
        );
        const { text } = await fixture.run("sessions_spawn", main, task, callId);
        expect(text).toContain("It has its task.");
        if (broken.made() < steps) break;
      }
    }
    expect(steps).toBeGreaterThan(5);
    const children = await childrenOf(fixture);
    expect(children).toHaveLength(calls);
    for (const { ref } of children) expect(await recordsOf(fixture.store, ref)).toHaveLength(1);
    expect((await fixture.store.load(sessionRef({ key: main })))?.entry["spawned"]).toHaveLength(calls);
  });

  it("at once, or when no further child is allowed, gives the one there is", async () => {
    await using fixture = await openFixture(open, { spawnLimits: { maxChildren: 1 } });
    await fixture.open(main);
    const answers = await Promise.all([1, 2, 3].map(() => fixture.run("sessions_spawn", main, task, "call_same")));
    answers.push(await fixture.run("sessions_spawn", main, task, "call_same"));
    const [child] = await childrenOf(fixture);
    for (const { details } of answers) expect(details["key"]).toBe(child?.ref.key);
    expect(await childrenOf(fixture)).toHaveLength(1);
    expect((await fixture.run("sessions_spawn", main, task, "call_other")).reason).toBe("spawn-children");
  });

  it("in another session, or for another task, is another call", async () => {
    await using fixture = await openFixture(open);
    await fixture.open(main);
    const first = await fixture.run("sessions_spawn", main, task, "call_0");
    const other = await fixture.run("sessions_spawn", main, { task: "Count the folders." }, "call_0");
    await resetSession(fixture.store, sessionRef({ key: main }), { random: systemRandom });
    const after = await fixture.run("sessions_spawn", main, task, "call_0");
    expect(new Set([first, other, after].map(({ details }) => details["key"])).size).toBe(3);
  });

  it("says so when the child is archived by now, and starts no other", async () => {
    await using fixture = await openFixture(open);
    await fixture.open(main);
    const { details } = await fixture.run("sessions_spawn", main, task, "call_0");
    await fixture.store.remove(sessionRef({ key: String(details["key"]) }));
    const again = await fixture.run("sessions_spawn", main, task, "call_0");
    expect(again).toMatchObject({ isError: false, details: { key: details["key"] } });
    expect(again.text).toContain("archived");
    expect(await childrenOf(fixture)).toHaveLength(1);
  });
});
