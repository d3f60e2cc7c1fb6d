import { describe, expect, it } from "vitest";
import { resetSession, systemRandom } from "@throughline/core/internal";
import { sessionRef, type SessionState } from "@throughline/core";
import { endEverywhere } from "@throughline/test-kit";
import { createSessionTools } from "../../src/session/create-session-tools.ts";
import { openFixture, recordsOf, storeKinds, type ToolFixture } from "./tool-fixture.ts";

const main = "agent:main:main";
const task = { task: "Count the files.", label: "counter" };

async function childrenOf({ store }: ToolFixture): Promise<readonly SessionState[]> {
  const { sessions } = await store.list({ state: "any", limit: 100 });
  return sessions.filter(({ entry }) => entry["spawnedBy"] === main);
}

describe.each(storeKinds)("a call of sessions_spawn made again, over %s", (_, open) => {
  it("after a crash at any step makes one child with one task", { tags: ["slow"] }, async () => {
    const spawnLimits = { maxChildren: 100, maxTotal: 100 };
    await using fixture = await openFixture(open, { spawnLimits });
    await fixture.open(main);
    let calls = 0;
    const steps = await endEverywhere(async (end) => {
      const callId = `call_${++calls}`;
      const [spawn] = createSessionTools({ store: end(fixture.store), spawnLimits });
      const call = { signal: new AbortController().signal, callId, ref: sessionRef({ key: main }) };
      await Promise.resolve(spawn?.run(task, call)).catch((error: unknown) =>
        expect(error).toMatchObject({ code: "STORE_CLOSED" }),
      );
      const { text } = await fixture.run("sessions_spawn", main, task, callId);
      expect(text).toContain("It has its task.");
    });
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
