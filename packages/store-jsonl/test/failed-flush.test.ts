import { sessionRef, type AppendOptions, type AppendResult, type SessionStore } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { crashStates } from "./crash-states.ts";
import { observe, simulatedStore } from "./crash-explorer.ts";
import { mainRef, userDraft } from "./session-fixture.ts";
import { createSimulatedDisk, systemError, type SimulatedDisk } from "./simulated-disk.ts";

const transcript = "/store/agents/main/sessions/s1.jsonl";
const entriesLog = "/store/agents/main/throughline/entries.log";

/** The next call like this fails. */
function failNext(disk: SimulatedDisk, wanted: string, wantedPath: string): void {
  disk.onCall = (call, path) => {
    if (call !== wanted || path !== wantedPath) return undefined;
    disk.onCall = () => undefined;
    throw systemError("EIO");
  };
}

async function storeOn(disk: SimulatedDisk): Promise<SessionStore> {
  const store = simulatedStore(disk);
  await store.save(mainRef, { sessionId: "s1" }, { ifRevision: null });
  return store;
}

/** What is in the session after each power cut that may come now: its texts, and one value of its entry. */
async function afterPowerCuts(disk: SimulatedDisk): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const image of crashStates(disk.moment(), { cutEveryBytes: 100_000 })) {
    const store = simulatedStore(createSimulatedDisk(image), { called: "o" });
    const state = await store.load(mainRef);
    const texts: string[] = [];
    if (state !== null)
      for await (const { records } of store.read(mainRef))
        for (const { record } of records)
          texts.push(String((record as { message?: { content: unknown } }).message?.content));
    found.add(state === null ? "no session" : `${texts.join(",")} ${String(state.entry["label"] ?? "")}`.trim());
    await store.close();
  }
  return found;
}

const forkRef = sessionRef({ key: "agent:main:forked" });
/** An entry save, or a reset, that need not survive a power cut. */
const atProcess = { ifRevision: 1, durability: "process" } as const;

/** The text of a record as `observe` has it: its id, its parent's, and the message. */
function textIn(record: string): unknown {
  return (JSON.parse(record.slice(record.indexOf("{"))) as { content: unknown }).content;
}

async function again(store: SessionStore, text: string | null, options: AppendOptions): Promise<AppendResult> {
  return store.append(mainRef, text === null ? [] : [userDraft(text)], { idempotencyKey: "turn", ...options });
}

describe("what a failed flush has left out", () => {
  it("is on the disk before a keyed append made again is acknowledged", async () => {
    const disk = createSimulatedDisk();
    const store = await storeOn(disk);
    await store.append(mainRef, [userDraft("one")]);
    failNext(disk, "flush", transcript);
    await expect(again(store, "two", {})).rejects.toMatchObject({ outcome: "unknown" });
    expect(await again(store, "two", {})).toMatchObject({ replayed: true });
    expect(await afterPowerCuts(disk)).toEqual(new Set(["one,two"]));
    await store.close();
  });

  it("is on the disk before a keyed append without records made again is acknowledged", async () => {
    const disk = createSimulatedDisk();
    const store = await storeOn(disk);
    failNext(disk, "flush", entriesLog);
    const entry = { label: "named" };
    await expect(again(store, null, { entry })).rejects.toMatchObject({ outcome: "unknown" });
    expect(await again(store, null, { entry })).toMatchObject({ replayed: true });
    expect(await afterPowerCuts(disk)).toEqual(new Set(["named"]));
    await store.close();
  });

  it("is on the disk before a record is acknowledged in a session that began with it", async () => {
    const disk = createSimulatedDisk();
    const store = await storeOn(disk);
    await store.append(mainRef, [userDraft("one")]);
    failNext(disk, "flushNow", entriesLog);
    const reset = store.save(mainRef, { sessionId: "s2" }, { ifRevision: 1 });
    await expect(reset).rejects.toMatchObject({ outcome: "unknown" });
    await store.append(mainRef, [userDraft("two")]);
    expect(await afterPowerCuts(disk)).toEqual(new Set(["two"]));
    await store.close();
  });

  it("is on the disk before an archive made again is acknowledged", async () => {
    const disk = createSimulatedDisk();
    const store = await storeOn(disk);
    failNext(disk, "flushNow", entriesLog);
    await expect(store.remove(mainRef)).rejects.toMatchObject({ outcome: "unknown" });
    await store.remove({ ...mainRef, archiveId: "s1" });
    expect(await afterPowerCuts(disk)).toEqual(new Set(["no session"]));
    await store.close();
  });

  it.each<readonly [string, (store: SessionStore) => Promise<unknown>]>([
    ["a reset at process", (store) => store.save(mainRef, { sessionId: "s2" }, atProcess)],
    ["an entry at process", (store) => store.save(mainRef, { sessionId: "s1", label: "new" }, atProcess)],
    ["an archive", (store) => store.remove(mainRef)],
    [
      "a fork",
      (store) => store.fork?.fork(mainRef, forkRef, { sessionId: "f1" }) ?? Promise.reject(new Error("no forks")),
    ],
    ["a rename", (store) => store.move(mainRef, { kind: "rename", key: "agent:main:renamed" })],
  ])("is on the disk before %s is acknowledged", async (_name, change) => {
    const disk = createSimulatedDisk();
    const store = await storeOn(disk);
    await store.append(mainRef, [userDraft("one")]);
    failNext(disk, "flush", transcript);
    await expect(again(store, "two", {})).rejects.toMatchObject({ outcome: "unknown" });
    await change(store);
    for (const image of crashStates(disk.moment(), { cutEveryBytes: 100_000 })) {
      const found = (await observe(image)).find(({ sessionId }) => sessionId === "s1");
      expect(found?.records.map(textIn)).toEqual(["one", "two"]);
    }
    await store.close();
  });

  it("goes back to what was written with less before the file was opened", async () => {
    const disk = createSimulatedDisk();
    const first = await storeOn(disk);
    await first.append(mainRef, [userDraft("one")]);
    await first.append(mainRef, [userDraft("two")], { durability: "process" });
    await first.close();
    const store = simulatedStore(disk, { called: "b" });
    failNext(disk, "flush", transcript);
    await expect(store.append(mainRef, [userDraft("three")])).rejects.toMatchObject({ outcome: "unknown" });
    await store.append(mainRef, [userDraft("four")]);
    expect(await afterPowerCuts(disk)).toEqual(new Set(["one,two,three,four"]));
    await store.close();
  });

  it("is not forgotten for the many other sessions in between", async () => {
    const disk = createSimulatedDisk();
    const store = await storeOn(disk);
    failNext(disk, "flush", transcript);
    await expect(store.append(mainRef, [userDraft("one")])).rejects.toMatchObject({ outcome: "unknown" });
    for (let count = 0; count < 65; count++) {
      const other = sessionRef({ key: `agent:main:other${count}` });
      await store.save(other, { sessionId: `o${count}` }, { ifRevision: null, durability: "process" });
      await store.append(other, [userDraft("other")], { durability: "process" });
    }
    await store.append(mainRef, [userDraft("two")]);
    const bytes = disk.image().get(transcript);
    const [, data] = [...disk.moment().data].find(([node]) => node.content === bytes) ?? [];
    expect(data?.pending.map(({ state }) => state)).toEqual([]);
    await store.close();
  });
});

describe("what another handle could not flush", () => {
  const marks = "/store/agents/main/throughline/unflushed";

  /** The disk after a handle could not flush a keyed append; with its mark, or as it is where the handle died before it. */
  async function failedAppend(hasMark: boolean): Promise<SimulatedDisk> {
    const disk = createSimulatedDisk();
    const store = await storeOn(disk);
    await store.append(mainRef, [userDraft("one")]);
    failNext(disk, "flush", transcript);
    await expect(again(store, "two", {})).rejects.toMatchObject({ code: "STORE_IO", outcome: "unknown" });
    expect(disk.files.names(marks)).toHaveLength(1);
    if (hasMark) return disk;
    for (const name of disk.files.names(marks)) disk.files.remove(`${marks}/${name}`);
    disk.files.removeFolder(marks);
    return disk;
  }

  it.each([true, false])(
    "is on the disk before it acknowledges the keyed append made again, marked: %s",
    async (hasMark) => {
      const disk = await failedAppend(hasMark);
      const other = simulatedStore(disk, { called: "b" });
      expect(await again(other, "two", {})).toMatchObject({ replayed: true, durability: "disk" });
      expect(await afterPowerCuts(disk)).toEqual(new Set(["one,two"]));
      expect(disk.files.facts(marks)).toBeNull();
      await other.close();
    },
  );

  it("is on the disk before it acknowledges an append behind it", async () => {
    const disk = await failedAppend(true);
    const other = simulatedStore(disk, { called: "b" });
    await other.append(mainRef, [userDraft("three")]);
    expect(await afterPowerCuts(disk)).toEqual(new Set(["one,two,three"]));
    await other.close();
  });

  it("stays in doubt when it fails again, and nothing behind it is acknowledged", async () => {
    const disk = await failedAppend(true);
    const other = simulatedStore(disk, { called: "b" });
    failNext(disk, "flushNow", transcript);
    await expect(again(other, "two", {})).rejects.toMatchObject({ code: "STORE_IO", outcome: "unknown" });
    failNext(disk, "flushNow", transcript);
    await expect(other.append(mainRef, [userDraft("three")])).rejects.toMatchObject({ outcome: "not-applied" });
    expect(disk.files.names(marks)).toHaveLength(1);
    expect(await again(other, "two", {})).toMatchObject({ replayed: true });
    expect(await afterPowerCuts(disk)).toEqual(new Set(["one,two"]));
    await other.close();
  });

  it("is on the disk before it acknowledges a keyed append without records made again", async () => {
    const disk = createSimulatedDisk();
    const store = await storeOn(disk);
    failNext(disk, "flush", entriesLog);
    const entry = { label: "named" };
    await expect(again(store, null, { entry })).rejects.toMatchObject({ outcome: "unknown" });
    const other = simulatedStore(disk, { called: "b" });
    expect(await again(other, null, { entry })).toMatchObject({ replayed: true });
    expect(await afterPowerCuts(disk)).toEqual(new Set(["named"]));
    await other.close();
  });

  it("is on the disk before it acknowledges a record in a session that began with it", async () => {
    const disk = createSimulatedDisk();
    const store = await storeOn(disk);
    await store.append(mainRef, [userDraft("one")]);
    failNext(disk, "flush", entriesLog);
    await expect(store.save(mainRef, { sessionId: "s2" }, { ifRevision: 1 })).rejects.toMatchObject({
      outcome: "unknown",
    });
    const other = simulatedStore(disk, { called: "b" });
    await other.append(mainRef, [userDraft("two")]);
    expect(await afterPowerCuts(disk)).toEqual(new Set(["two"]));
    await other.close();
  });
});
