import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadExisting, resetSession, systemRandom, throughlineDraft } from "@throughline/core/internal";
import { redactRecords, type SessionEntry, type SessionStore } from "@throughline/core";
import { buildContext } from "@throughline/history";
import type { CheckpointEvent } from "../src/checkpoint-event.ts";
import { createCheckpointer, listCheckpoints } from "@throughline/checkpoint";
import { readCheckpointState } from "../src/checkpoint-state.ts";
import {
  assistant,
  begin,
  checkpointsIn,
  good,
  ManualClock,
  options,
  places,
  ref,
  user,
  writer,
  type Place,
} from "./checkpoint-fixture.ts";

describe.each(places)("checkpoints over store-$name", ({ create }) => {
  let place: Place;
  let store: SessionStore;
  let clock: ManualClock;
  beforeEach(async () => {
    place = create();
    store = place.open();
    clock = new ManualClock();
    await begin(store, [
      user("Build an importer."),
      assistant("Which format?"),
      user("JSON Lines."),
      assistant("Good."),
    ]);
  });
  afterEach(async () => {
    await store.close();
    place.remove();
  });
  const entry = async (): Promise<SessionEntry> => (await loadExisting(store, ref)).entry;
  const size = (tokens: number): { tokens: number; windowTokens: number } => ({ tokens, windowTokens: 200_000 });

  it("are side records that say what they cover, and change nothing that is sent", async () => {
    const before = await loadExisting(store, ref);
    const model = writer(good);
    const run = createCheckpointer(options(store, clock, [model])).afterTurn(ref, await entry(), size(60_000));
    expect(run?.due).toBe("tokens");
    expect(await run?.done).toMatchObject({ kind: "written", coversToId: before.head.headId });
    const [stored] = await checkpointsIn(store);
    expect(stored).toMatchObject({ side: true, parentId: before.head.headId });
    expect(stored?.record["checkpoint"]).toMatchObject({
      ...JSON.parse(good),
      tokensAtCheckpoint: 60_000,
      messageCountAtCheckpoint: 4,
      coversToId: before.head.headId,
    });
    expect((await loadExisting(store, ref)).head).toMatchObject({ headId: before.head.headId });
    expect(model.requests[0]?.text).toContain("[User]: JSON Lines.");
  });

  it("cost one call a crossing, also after a restart", async () => {
    const model = writer(good);
    let checkpointer = createCheckpointer(options(store, clock, [model]));
    for (const tokens of [10_000, 60_000, 70_000, 90_000, 120_000, 130_000]) {
      await store.append(ref, [user(`at ${tokens}`), assistant("noted")]);
      if (tokens === 90_000) {
        await store.close();
        store = place.open();
        checkpointer = createCheckpointer(options(store, clock, [model]));
      }
      await checkpointer.afterTurn(ref, await entry(), size(tokens))?.done;
    }
    expect(model.requests).toHaveLength(2);
    expect(model.requests[1]?.previousSummary).toContain("JSON Lines");
    expect(model.requests[1]?.text).not.toContain("Build an importer");
    const listed = await listCheckpoints(store, ref);
    expect(listed.map(({ tokensAtCheckpoint, model: by }) => [tokensAtCheckpoint, by])).toEqual([
      [60_000, "scripted"],
      [120_000, "scripted"],
    ]);
    expect(listed[1]?.coversToSeq).toBeGreaterThan(listed[0]?.coversToSeq ?? 0);
  });

  it(
    "are made after so many messages of the user, counted over restarts, in the commit of the turn",
    { tags: ["slow"] },
    async () => {
      const model = writer(good);
      const due: boolean[] = [];
      for (let turn = 0; turn < 22; turn++) {
        const checkpointer = createCheckpointer(options(store, clock, [model]));
        await store.append(ref, [user(`turn ${turn}`)], { entry: checkpointer.turnPatch(await entry(), 1) });
        const run = checkpointer.afterTurn(ref, await entry(), { tokens: 6000, windowTokens: 200_000 });
        due.push(run !== null);
        await run?.done;
      }
      expect(due.flatMap((isDue, turn) => (isDue ? [turn] : []))).toEqual([9, 19]);
    },
  );

  it("asked for again with nothing new ask no writer and write nothing, however often and by whomever", async () => {
    const model = writer(good);
    const events: CheckpointEvent[] = [];
    const by = (owner: string) =>
      createCheckpointer({ ...options(store, clock, [model]), owner, onEvent: (event) => events.push(event) });
    expect(await by("one").make(ref, 1000)).toMatchObject({ kind: "written" });
    // What a flush put in and records beside the conversation are nothing new.
    await store.append(ref, [user("store what matters", { source: "flush" }), throughlineDraft("call", { step: 1 })]);
    const before = await loadExisting(store, ref);
    const told = events.length;
    for (const owner of ["one", "one", "two"]) {
      expect(await by(owner).make(ref, 1000)).toEqual({ kind: "nothing", reason: "nothing-new" });
    }
    const after = await loadExisting(store, ref);
    expect([after.revision, after.head.lastSeq, model.requests.length, events.length]).toEqual([
      before.revision,
      before.head.lastSeq,
      1,
      told,
    ]);
    await store.append(ref, [user("And CSV?")]);
    expect(await by("two").make(ref, 1000)).toMatchObject({ kind: "written" });
    expect(model.requests).toHaveLength(2);
  });

  it("are not made for the size of a turn whose window was compacted since", async () => {
    const model = writer(good);
    const checkpointer = createCheckpointer(options(store, clock, [model]));
    const run = checkpointer.afterTurn(ref, await entry(), size(120_000));
    await store.append(ref, [], { entry: { compactionCount: 1 } });
    expect(await run?.done).toEqual({ kind: "nothing", reason: "not-due" });
    expect(model.requests).toHaveLength(0);
    // The smaller window still has its first threshold before it.
    expect(await checkpointer.afterTurn(ref, await entry(), size(60_000))?.done).toMatchObject({ kind: "written" });
  });

  it("never hold a turn: appends go on while one is in the making, and only one is", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const model = writer(() => promise);
    const checkpointer = createCheckpointer(options(store, clock, [model]));
    const run = checkpointer.afterTurn(ref, await entry(), size(60_000));
    const turn = { action: "open", turnId: "t", owner: "o", leaseUntilMs: Date.parse("2099-01-01"), fence: 1 } as const;
    await store.append(ref, [user("meanwhile")], { turn });
    expect(checkpointer.afterTurn(ref, await entry(), size(160_000))).toBeNull();
    const elsewhere = createCheckpointer({ ...options(store, clock, [model]), owner: "two" });
    expect(await elsewhere.make(ref, 160_000)).toEqual({ kind: "nothing", reason: "in-the-making" });
    resolve(good);
    expect(await run?.done).toMatchObject({ kind: "written" });
    expect(model.requests).toHaveLength(1);
    expect((await loadExisting(store, ref)).head.turn?.turnId).toBe("t");
    expect(checkpointer.afterTurn(ref, await entry(), size(160_000))?.due).toBe("tokens");
    await checkpointer.close();
  });

  it("that fail are no failure of the turn: they wait longer each time and are seen", async () => {
    const events: CheckpointEvent[] = [];
    const model = writer("I'm sorry, I cannot help with that.");
    const checkpointer = createCheckpointer({
      ...options(store, clock, [model]),
      onEvent: (event) => events.push(event),
    });
    expect(await checkpointer.afterTurn(ref, await entry(), size(60_000))?.done).toMatchObject({ kind: "failed" });
    expect(checkpointer.afterTurn(ref, await entry(), size(60_000))).toBeNull();
    clock.move(60_000);
    expect(await checkpointer.afterTurn(ref, await entry(), size(60_000))?.done).toMatchObject({ kind: "failed" });
    clock.move(119_999);
    expect(checkpointer.afterTurn(ref, await entry(), size(60_000))).toBeNull();
    expect(events.map(({ name }) => name).filter((name) => name === "checkpoint.failed")).toHaveLength(2);
    expect(await checkpointsIn(store)).toEqual([]);
  });

  it("go to the next writer when one fails", async () => {
    const cheap = writer(() => Promise.reject(new TypeError("no such model")), "cheap");
    const main = writer(good, "main");
    const run = createCheckpointer(options(store, clock, [cheap, main])).afterTurn(ref, await entry(), size(60_000));
    expect(await run?.done).toMatchObject({ kind: "written" });
    expect((await listCheckpoints(store, ref))[0]?.model).toBe("main");
  });

  it("end after ten minutes, and with the process that makes them", async () => {
    const deaf = writer(() => new Promise<string>(() => {}));
    const checkpointer = createCheckpointer(options(store, clock, [deaf]));
    const run = checkpointer.afterTurn(ref, await entry(), size(60_000));
    while (deaf.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    clock.move(600_000);
    expect(await run?.done).toMatchObject({ kind: "failed" });
    clock.move(60_000);
    const again = checkpointer.afterTurn(ref, await entry(), size(60_000));
    while (deaf.requests.length === 1) await new Promise((resolve) => setImmediate(resolve));
    await checkpointer.close();
    expect(await again?.done).toMatchObject({ kind: "failed" });
    expect(readCheckpointState(await entry())).toMatchObject({ running: null, failures: 1 });
  });

  it("left behind by a process that is gone are begun again after their time", async () => {
    const dead = createCheckpointer({
      ...options(store, clock, [writer(() => new Promise<string>(() => {}))]),
      owner: "dead",
    });
    void dead.afterTurn(ref, await entry(), size(60_000));
    while (readCheckpointState(await entry()).running === null) await new Promise((resolve) => setImmediate(resolve));
    const model = writer(good);
    const living = createCheckpointer(options(store, clock, [model]));
    expect(living.afterTurn(ref, await entry(), size(60_000))).toBeNull();
    clock.move(700_000);
    expect(living.afterTurn(ref, await entry(), size(60_000))).toBeNull();
    await living.close();
    clock.move(60_000);
    const later = createCheckpointer(options(store, clock, [model]));
    expect(await later.afterTurn(ref, await entry(), size(60_000))?.done).toMatchObject({ kind: "written" });
    await dead.close();
  });

  it("leave out what a flush put in, and what was redacted", async () => {
    await store.append(ref, [
      user("store what matters", { source: "flush" }),
      user("The key is hunter2."),
      assistant("ok"),
    ]);
    const model = writer(good);
    const checkpointer = createCheckpointer(options(store, clock, [model]));
    await checkpointer.make(ref, 1000);
    expect(model.requests[0]?.text).not.toContain("store what matters");
    const records = [];
    for await (const page of store.read(ref)) records.push(...page.records);
    const secret = records.find(({ record }) => JSON.stringify(record).includes("hunter2"));
    await redactRecords(store, ref, [secret?.id ?? ""], { reason: "a secret" });
    await store.append(ref, [user("go on")]);
    await checkpointer.make(ref, 1000);
    expect(model.requests[1]?.previousSummary).toBeNull();
    expect(model.requests[1]?.text).toContain("Build an importer");
    expect(model.requests[1]?.text).not.toContain("hunter2");
  });

  it("belong to their session: after a reset the new one gets none of the old", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const model = writer(() => promise);
    const run = createCheckpointer(options(store, clock, [model])).afterTurn(ref, await entry(), size(60_000));
    while (model.requests.length === 0) await new Promise((done) => setImmediate(done));
    await resetSession(store, ref, { random: systemRandom });
    resolve(good);
    expect(await run?.done).toEqual({ kind: "nothing", reason: "reset" });
    expect(await checkpointsIn(store)).toEqual([]);
  });

  it("stand for what they cover in a session that is taken over", async () => {
    await createCheckpointer(options(store, clock, [writer(good)])).make(ref, 60_000);
    await store.append(ref, [user("What did we decide?")]);
    const records = [];
    for await (const page of store.read(ref)) records.push(...page.records);
    const { messages } = buildContext(records, { fromCheckpoint: true });
    expect(messages.map(({ role }) => role)).toEqual(["compactionSummary", "user"]);
    expect(JSON.stringify(messages[0])).toContain("settled on JSON Lines");
  });

  it("ask no one when they are off or nothing is new", async () => {
    const model = writer(good);
    const off = createCheckpointer({ ...options(store, clock, [model]), settings: { enabled: false } });
    expect(off.afterTurn(ref, await entry(), size(160_000))).toBeNull();
    const on = createCheckpointer(options(store, clock, [model]));
    await on.make(ref, 60_000);
    expect(await on.make(ref, 60_000)).toEqual({ kind: "nothing", reason: "nothing-new" });
    expect(model.requests).toHaveLength(1);
  });
});
