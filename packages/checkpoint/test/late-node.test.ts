import { stoppingStore } from "@throughline/test-kit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadExisting, resetSession, systemRandom } from "@throughline/core/internal";
import type { SessionStore } from "@throughline/core";
import type { CheckpointEvent } from "../src/checkpoint-event.ts";
import { type CheckpointWriter, createCheckpointer } from "@throughline/checkpoint";
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

/** Until the claim of a node is not believed any more. */
const claimMs = 660_000;

describe.each(places)("a node that comes back late, over store-$name", ({ create }) => {
  let place: Place;
  let stores: readonly [SessionStore, SessionStore];
  let clock: ManualClock;
  let events: CheckpointEvent[];
  beforeEach(async () => {
    place = create();
    stores = [place.open(), place.open()];
    clock = new ManualClock();
    events = [];
    await begin(stores[0], [user("Build an importer."), assistant("Which format?"), user("JSON Lines.")]);
  });
  afterEach(async () => {
    for (const store of stores) await store.close();
    place.remove();
  });

  const late = (store: SessionStore, write: CheckpointWriter["write"]): ReturnType<typeof createCheckpointer> =>
    createCheckpointer({
      ...options(store, clock, [writer(write)]),
      owner: "late",
      onEvent: (event) => void events.push(event),
    });
  /** A late node whose writer has not answered, and another that believes its claim no more. */
  const writing = async (): Promise<{
    readonly run: ReturnType<ReturnType<typeof createCheckpointer>["make"]>;
    readonly reply: PromiseWithResolvers<string>;
    readonly quick: ReturnType<typeof createCheckpointer>;
  }> => {
    const reply = Promise.withResolvers<string>();
    const slow = writer(() => reply.promise);
    const run = late(stores[0], slow.write).make(ref, 60_000);
    while (slow.requests.length === 0) await new Promise((done) => setImmediate(done));
    // Only the other node's clock has gone on: this one's timers sleep with it.
    const ahead = new ManualClock();
    ahead.move(claimMs);
    const quick = createCheckpointer({ ...options(stores[1], ahead, [writer(good)]), owner: "quick" });
    return { run, reply, quick };
  };
  const endOfEvents = (): unknown => events.at(-1);
  const overtaken = { kind: "nothing", reason: "overtaken" };
  const dropped = { name: "checkpoint.dropped", ref, reason: "overtaken" };

  it("with its writer's reply adds nothing to what another has finished meanwhile", async () => {
    const { run, reply, quick } = await writing();
    expect(await quick.make(ref, 60_000)).toMatchObject({ kind: "written" });
    reply.resolve(good);
    expect(await run).toEqual(overtaken);
    expect(endOfEvents()).toEqual(dropped);
    expect(await checkpointsIn(stores[0])).toHaveLength(1);
  });

  it("wakes in the moment in which another takes over: one of the two writes", async () => {
    const { run, reply, quick } = await writing();
    reply.resolve(good);
    // Both go on at once: whichever it is, one is written.
    const both = await Promise.all([run, quick.make(ref, 60_000)]);
    expect(both.filter(({ kind }) => kind === "written")).toHaveLength(1);
    expect(both.filter(({ kind }) => kind === "failed")).toEqual([]);
    expect(await checkpointsIn(stores[0])).toHaveLength(1);
  });

  it("stopped before its append adds nothing, and takes nothing from who has the job now", async () => {
    const node = stoppingStore(stores[0]);
    const run = late(node.store, () => Promise.resolve(good)).make(ref, 60_000);
    await node.isStopped;
    clock.move(claimMs);
    const quick = createCheckpointer({ ...options(stores[1], clock, [writer(good)]), owner: "quick" });
    expect(await quick.make(ref, 61_000)).toMatchObject({ kind: "written" });
    const { entry } = await loadExisting(stores[1], ref);
    node.wake();
    expect(await run).toEqual(overtaken);
    expect(endOfEvents()).toEqual(dropped);
    expect(await checkpointsIn(stores[0])).toHaveLength(1);
    expect((await loadExisting(stores[1], ref)).entry).toEqual(entry);
  });

  it("while the other is still at it leaves the job to the other", async () => {
    const node = stoppingStore(stores[0]);
    const run = late(node.store, () => Promise.resolve(good)).make(ref, 60_000);
    await node.isStopped;
    clock.move(claimMs);
    const reply = Promise.withResolvers<string>();
    const slow = writer(() => reply.promise);
    const quick = createCheckpointer({ ...options(stores[1], clock, [slow]), owner: "quick" });
    const made = quick.make(ref, 61_000);
    while (slow.requests.length === 0) await new Promise((done) => setImmediate(done));
    node.wake();
    expect(await run).toEqual(overtaken);
    expect(readCheckpointState((await loadExisting(stores[1], ref)).entry).running?.owner).toBe("quick");
    reply.resolve(good);
    expect(await made).toMatchObject({ kind: "written" });
    expect(await checkpointsIn(stores[0])).toHaveLength(1);
  });

  it("whose writer fails after another has finished is no failure", async () => {
    const { run, reply, quick } = await writing();
    expect(await quick.make(ref, 60_000)).toMatchObject({ kind: "written" });
    reply.reject(new TypeError("the connection is gone"));
    expect(await run).toEqual(overtaken);
    expect(endOfEvents()).toEqual(dropped);
    expect(readCheckpointState((await loadExisting(stores[1], ref)).entry).failures).toBe(0);
  });

  it("after a reset writes nothing of the old session into the new one", async () => {
    const node = stoppingStore(stores[0]);
    const run = late(node.store, () => Promise.resolve(good)).make(ref, 60_000);
    await node.isStopped;
    await resetSession(stores[1], ref, { random: systemRandom });
    await stores[1].append(ref, [user("Something else.")]);
    node.wake();
    expect(await run).toEqual({ kind: "nothing", reason: "reset" });
    expect(endOfEvents()).toEqual({ ...dropped, reason: "reset" });
    expect(await checkpointsIn(stores[1])).toEqual([]);
  });

  it("finds that turns went on, and its checkpoint is written beside them", async () => {
    const node = stoppingStore(stores[0]);
    const run = late(node.store, () => Promise.resolve(good)).make(ref, 60_000);
    await node.isStopped;
    await stores[1].append(ref, [assistant("Done."), user("Thanks.")]);
    node.wake();
    expect(await run).toMatchObject({ kind: "written" });
    expect(await checkpointsIn(stores[1])).toHaveLength(1);
  });
});
