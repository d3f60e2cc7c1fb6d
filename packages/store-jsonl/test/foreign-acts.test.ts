import type { SessionStore } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { simulatedStore } from "./crash-explorer.ts";
import { countFaults } from "./fault-counts.ts";
import { crashStates } from "./crash-states.ts";
import { beginning, entryIn, exploreForeignActs, foreignActs, imageAfter } from "./foreign-acts.ts";
import { mainRef, userDraft } from "./session-fixture.ts";
import { createSimulatedDisk, type DiskImage } from "./simulated-disk.ts";

const timeout = 300_000;

/** The disk of a process that was killed right after an append with a patch was acknowledged at `disk`. */
async function killedAfterPatch(): Promise<DiskImage> {
  const disk = createSimulatedDisk();
  const store = simulatedStore(disk);
  await store.save(mainRef, { sessionId: "s1", label: "one" }, { ifRevision: null });
  await store.append(mainRef, [userDraft("hello")]);
  await store.append(mainRef, [userDraft("two")], { entry: { sendPolicy: "deny" } });
  return disk.image();
}

const visits: Readonly<Record<string, (store: SessionStore) => Promise<unknown>>> = {
  lists: (store) => store.list(),
  loads: (store) => store.load(mainRef),
  reads: async (store) => {
    for await (const page of store.read(mainRef)) expect(page.records).not.toEqual([]);
  },
  appends: (store) => store.append(mainRef, [userDraft("three")]),
};

describe("an entry that was acknowledged", () => {
  it.each(Object.keys(visits))(
    "survives whatever another program does once a process %s it and closes",
    async (visit) => {
      const disk = createSimulatedDisk(await killedAfterPatch());
      const store = simulatedStore(disk, { called: "v" });
      await visits[visit]?.(store);
      await store.close();
      for (const act of foreignActs.keys())
        expect([act, await entryIn(imageAfter(disk.image(), act) ?? new Map())]).toEqual([
          act,
          '[{"sessionId":"s1","label":"one","sendPolicy":"deny"},2]',
        ]);
    },
  );

  it("survives a power cut and another program's act once a repeat was acknowledged, although the first call died before its flush", async () => {
    const disk = createSimulatedDisk(beginning(true));
    const dying = simulatedStore(disk);
    await dying.save(mainRef, { sessionId: "s1" }, { ifRevision: null });
    await dying.append(mainRef, [userDraft("one")]);
    // What this one has flushed of the entries log it believes to be on the disk.
    const next = simulatedStore(disk, { called: "n" });
    await next.append(mainRef, [userDraft("three")]);
    const patch = [mainRef, [userDraft("two")], { entry: { sendPolicy: "deny" }, idempotencyKey: "k" }] as const;
    await dying.append(patch[0], patch[1], { ...patch[2], durability: "process" });
    expect(await next.append(...patch)).toMatchObject({ replayed: true, durability: "disk" });
    const found = new Set<string>();
    for (const state of crashStates(disk.moment(), { cutEveryBytes: 64 }))
      for (const act of foreignActs.keys()) found.add(await entryIn(imageAfter(state, act) ?? state));
    expect([...found]).toEqual(['[{"sessionId":"s1","sendPolicy":"deny"},2]']);
  });

  it.for([true, false])(
    "survives a kill or a power cut followed by another program's act, beside OpenClaw: %s",
    { timeout },
    async (isOpenclaws, context) => {
      const result = await exploreForeignActs({ isOpenclaws, statesPerMoment: 3, cutEveryBytes: 64 });
      expect(result.problems.slice(0, 3)).toEqual([]);
      expect(result.states).toBeGreaterThanOrEqual(300);
      countFaults(context, { states: result.states });
    },
  );

  it("is not written again where the log has it", async () => {
    const disk = createSimulatedDisk(await killedAfterPatch());
    const sizes: (number | undefined)[] = [];
    for (const called of ["a", "b", "c"]) {
      const store = simulatedStore(disk, { called });
      await store.load(mainRef);
      await store.close();
      sizes.push(disk.image().get("/store/agents/main/throughline/entries.log")?.length);
    }
    expect(new Set(sizes).size).toBe(1);
  });
});

describe("the last line of the entries log", () => {
  it("counts at once when it is whole and lacks only its line feed", async () => {
    const disk = createSimulatedDisk();
    const writer = simulatedStore(disk);
    await writer.save(mainRef, { sessionId: "s1", label: "one" }, { ifRevision: null });
    await writer.close();
    const log = "/store/agents/main/throughline/entries.log";
    const image = new Map(disk.image());
    image.set(log, (image.get(log) ?? new Uint8Array(0)).slice(0, -1));
    const cut = createSimulatedDisk(image);
    const store = simulatedStore(cut, { called: "b" });
    expect((await store.load(mainRef))?.entry).toMatchObject({ label: "one" });
    expect((await store.list()).sessions).toHaveLength(1);
    await store.append(mainRef, [], { entry: { label: "two" } });
    expect((await store.load(mainRef))?.entry).toMatchObject({ label: "two" });
    await store.close();
    expect(
      Buffer.from(cut.image().get(log) ?? [])
        .toString()
        .split("\n"),
    ).toHaveLength(3);
  });

  it("counts no more when its writer took it back", async () => {
    const disk = createSimulatedDisk();
    const writer = simulatedStore(disk);
    await writer.save(mainRef, { sessionId: "s1", label: "one" }, { ifRevision: null });
    await writer.append(mainRef, [], { entry: { label: "two" } });
    const log = "/store/agents/main/throughline/entries.log";
    const whole = Buffer.from(disk.image().get(log) ?? []);
    const handle = disk.files.open(log, "append");
    disk.files.truncate(handle, whole.length - 1);
    const reader = simulatedStore(disk, { called: "b" });
    expect((await reader.load(mainRef))?.entry).toMatchObject({ label: "two" });
    disk.files.truncate(handle, whole.indexOf("\n") + 1);
    expect((await reader.load(mainRef))?.entry).toMatchObject({ label: "one" });
    await reader.close();
  });
});
