import { sessionRef, type SessionRef, type SessionStore } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { crashStates, imageDigest } from "./crash-states.ts";
import { simulatedStore } from "./crash-explorer.ts";
import { mainRef, userDraft } from "./session-fixture.ts";
import { createSimulatedDisk, systemError, type SimulatedDisk } from "./simulated-disk.ts";

const sessions = "/store/agents/main/sessions";
const named = sessionRef({ key: "agent:main:telegram:direct:1" });
const timestamp = "2026-01-02T03:04:05.006Z";
const foreignLines = [
  { type: "session", version: 3, id: "f1", timestamp, cwd: "/" },
  { type: "message", id: "m1", parentId: null, timestamp, message: { role: "user", content: "theirs" } },
].map((line) => `${JSON.stringify(line)}\n`);

function emptyDisk(): SimulatedDisk {
  return createSimulatedDisk(
    new Map([
      ["/", null],
      ["/store", null],
    ]),
  );
}

/** A store of ours with a record, all of it on the disk. */
async function diskOfOurs(): Promise<SimulatedDisk> {
  const disk = emptyDisk();
  const store = simulatedStore(disk, { called: "a" });
  await store.save(mainRef, { sessionId: "s1" }, { ifRevision: null });
  await store.append(mainRef, [userDraft("one")]);
  await store.close();
  return createSimulatedDisk(disk.image());
}

/** What a program does that flushes nothing. */
function write({ files }: SimulatedDisk, path: string, text: string): void {
  const handle = files.open(path, "create");
  files.write(handle, Buffer.from(text));
  files.close(handle);
}

function writeFolders({ files }: SimulatedDisk): void {
  for (const path of ["/store/agents", "/store/agents/main", sessions]) files.makeFolder(path);
}

function writeForeign(disk: SimulatedDisk): void {
  write(disk, `${sessions}/f1.jsonl`, foreignLines.join(""));
  write(disk, `${sessions}/other.tmp`, JSON.stringify({ [named.key]: { sessionId: "f1", sendPolicy: "deny" } }));
  disk.files.rename(`${sessions}/other.tmp`, `${sessions}/sessions.json`);
}

/** Runs work of a process that is killed before the first call like this. */
async function killedBefore(
  disk: SimulatedDisk,
  isDue: (call: string, path: string) => boolean,
  work: (store: SessionStore) => Promise<unknown>,
): Promise<void> {
  let isDead = false;
  disk.onCall = (call, path) => {
    isDead ||= isDue(call, path);
    if (isDead) throw systemError("EIO");
    return undefined;
  };
  await expect(work(simulatedStore(disk, { called: "k" }))).rejects.toThrow();
  expect(isDead).toBe(true);
  disk.onCall = () => undefined;
}

async function archived(store: SessionStore): Promise<SessionRef> {
  const [session] = (await store.list({ state: "archived" })).sessions;
  return session?.ref ?? mainRef;
}

/** Fits a rename of this file and whatever comes after it, or the first call of another kind after that. */
function afterRenaming(name: string, then: string): (call: string, path: string) => boolean {
  let isRenamed = false;
  return (call, path) => {
    const isDue = isRenamed && call === then;
    isRenamed ||= call === "rename" && path.includes(name);
    return isDue;
  };
}

type Prepare = () => Promise<SimulatedDisk>;

const appendTo =
  (ref: SessionRef) =>
  (store: SessionStore): Promise<unknown> =>
    store.append(ref, [userDraft("ours")]);

const saveNamed = async (store: SessionStore): Promise<void> => {
  await store.save(named, { sessionId: "s3", sendPolicy: "allow" }, { ifRevision: null });
  await appendTo(named)(store);
};

/** What was there before a process opens the store, what it does, and where its record and entry have to be then. */
const cases: readonly (readonly [
  what: string,
  prepare: Prepare,
  work: (store: SessionStore) => Promise<unknown>,
  ref: SessionRef,
  entry: Readonly<Record<string, unknown>>,
])[] = [
  [
    "a transcript and an index of another program",
    async () => {
      const disk = await diskOfOurs();
      writeForeign(disk);
      return disk;
    },
    appendTo(named),
    named,
    { sendPolicy: "deny" },
  ],
  [
    "a transcript in folders of another program",
    async () => {
      const disk = emptyDisk();
      writeFolders(disk);
      writeForeign(disk);
      return disk;
    },
    appendTo(named),
    named,
    { sendPolicy: "deny" },
  ],
  [
    "folders of another program",
    async () => {
      const disk = emptyDisk();
      writeFolders(disk);
      return disk;
    },
    saveNamed,
    named,
    { sendPolicy: "allow" },
  ],
  [
    "a transcript of ours that another program wrote anew",
    async () => {
      const disk = await diskOfOurs();
      const bytes = disk.image().get(`${sessions}/s1.jsonl`);
      write(disk, `${sessions}/s1.tmp`, `${Buffer.from(bytes ?? []).toString()}${foreignLines[1]}`);
      disk.files.rename(`${sessions}/s1.tmp`, `${sessions}/s1.jsonl`);
      return disk;
    },
    appendTo(mainRef),
    mainRef,
    {},
  ],
  [
    "a redaction that was killed before its name was on the disk",
    async () => {
      const disk = await diskOfOurs();
      await killedBefore(disk, afterRenaming("s1.jsonl", "flushFolder"), async (store) => {
        const { records } = await store.append(mainRef, [userDraft("secret")]);
        await store.redact(mainRef, [records[0]?.id ?? ""], { reason: "asked" });
      });
      return disk;
    },
    appendTo(mainRef),
    mainRef,
    {},
  ],
  [
    "an entries log that was written anew by a process that was killed before its name was on the disk",
    async () => {
      const disk = await diskOfOurs();
      await killedBefore(disk, afterRenaming("entries.log", "flushFolder"), async (store) => {
        await store.save(named, { sessionId: "s2" }, { ifRevision: null });
        await store.remove(named, { purge: true });
      });
      return disk;
    },
    saveNamed,
    named,
    { sendPolicy: "allow" },
  ],
  [
    "an entries log that was made by a process that was killed before its name was on the disk",
    async () => {
      const disk = emptyDisk();
      const isDue = (call: string): boolean =>
        call === "flushFolder" && disk.image().has("/store/agents/main/throughline/entries.log");
      await killedBefore(disk, isDue, (store) => store.save(mainRef, { sessionId: "s1" }, { ifRevision: null }));
      return disk;
    },
    saveNamed,
    named,
    { sendPolicy: "allow" },
  ],
  [
    "folders of a process that was killed before they were on the disk",
    async () => {
      const disk = emptyDisk();
      const isDue = (call: string): boolean => call === "flushFolder";
      await killedBefore(disk, isDue, (store) => store.save(mainRef, { sessionId: "s1" }, { ifRevision: null }));
      return disk;
    },
    saveNamed,
    named,
    { sendPolicy: "allow" },
  ],
  [
    "a transcript whose name was being restored by a process that was killed",
    async () => {
      const disk = await diskOfOurs();
      const first = simulatedStore(disk, { called: "b" });
      await first.append(mainRef, [userDraft("ours")]);
      await first.move(mainRef, { kind: "archive" });
      await killedBefore(disk, afterRenaming("s1.jsonl", "flushFolder"), async (store) => {
        await store.move(await archived(store), { kind: "restore" });
        throw new Error("a name that stays as it was is no failure");
      });
      return disk;
    },
    (store) => store.move(mainRef, { kind: "rename", key: named.key }),
    named,
    {},
  ],
];

/** Everything that is said in the session. */
async function wordsOf(store: SessionStore, ref: SessionRef): Promise<string> {
  const pages: unknown[] = [];
  for await (const page of store.read(ref)) pages.push(page);
  return JSON.stringify(pages);
}

/** Opens every state that a power cut may leave. */
async function afterEveryCut(disk: SimulatedDisk, check: (store: SessionStore) => Promise<void>): Promise<void> {
  const seen = new Set<string>();
  for (const image of crashStates(disk.moment(), { cutEveryBytes: 64 })) {
    const digest = imageDigest(image);
    if (seen.has(digest)) continue;
    seen.add(digest);
    await using store = simulatedStore(createSimulatedDisk(image), { called: "z" });
    await check(store);
  }
}

describe("what is acknowledged at disk", () => {
  it.for(cases)("survives a power cut behind %s", async ([, prepare, work, ref, entry]) => {
    const disk = await prepare();
    await work(simulatedStore(disk, { called: "w" }));
    await afterEveryCut(disk, async (store) => {
      expect(await wordsOf(store, ref)).toContain('"ours"');
      expect((await store.load(ref))?.entry).toMatchObject(entry);
    });
  });

  it("survives a power cut behind a change of another process that is not on the disk yet", async () => {
    const disk = await diskOfOurs();
    let letThrough: () => void = () => undefined;
    const isLetThrough = new Promise<void>((resolve) => (letThrough = resolve));
    const flush = (handle: number): Promise<void> => isLetThrough.then(() => disk.files.flush(handle));
    const slow = simulatedStore({ ...disk, files: { ...disk.files, flush } }, { called: "s" });
    const quick = simulatedStore(disk, { called: "q" });
    await quick.append(mainRef, [userDraft("before")]);
    const renamed = slow.move(mainRef, { kind: "rename", key: named.key });
    while ((await quick.load(named)) === null) await new Promise((resolve) => setImmediate(resolve));
    await appendTo(named)(quick);
    await afterEveryCut(disk, async (store) => expect(await wordsOf(store, named)).toContain('"ours"'));
    letThrough();
    await renamed;
  });

  it("of a session of another program leaves one that takes appends, whatever became of its transcript", async () => {
    const disk = await diskOfOurs();
    writeForeign(disk);
    await simulatedStore(disk, { called: "w" }).append(named, [], { entry: { label: "ours" } });
    await afterEveryCut(disk, async (store) => {
      expect((await store.load(named))?.entry).toMatchObject({ label: "ours" });
      await appendTo(named)(store);
    });
  });
});
