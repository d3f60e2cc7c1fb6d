import type { SessionStore } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { simulatedStore } from "./crash-explorer.ts";
import { countFaults } from "./fault-counts.ts";
import { entryIn, exploreForeignActs, foreignActs, imageAfter } from "./foreign-acts.ts";
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

  it(
    "survives a kill or a power cut followed by another program's act, once it was caught up",
    { timeout },
    async (context) => {
      const result = await exploreForeignActs({ statesPerMoment: 3, cutEveryBytes: 64 });
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
