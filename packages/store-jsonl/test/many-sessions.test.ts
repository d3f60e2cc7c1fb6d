import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { sessionRef, type SessionRef, type SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type FileFacts, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { mainRef, userDraft } from "./session-fixture.ts";
import { filesBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const timestamp = "2026-01-02T03:04:05.006Z";

function refOf(name: string): SessionRef {
  return sessionRef({ key: `agent:main:telegram:direct:${name}` });
}

/** A transcript of another program. */
function writeForeign(root: string, id: string): SessionRef {
  const sessions = `${root}/agents/main/sessions`;
  mkdirSync(sessions, { recursive: true });
  const header = JSON.stringify({ type: "session", version: 3, id, timestamp, cwd: "/" });
  writeFileSync(`${sessions}/${id}.jsonl`, `${header}\n`);
  return sessionRef({ key: `agent:main:import:direct:${id}` });
}

interface Among {
  readonly store: SessionStore;
  /** How often the folder was looked through. */
  readonly looks: () => number;
  /** The folder's time stays what it is, as that of a clock does that ticks seldom. */
  readonly stopClock: () => void;
}

/** A store with so many sessions of another program, all taken over. */
async function storeAmong(root: string, count: number): Promise<Among> {
  for (let nth = 0; nth < count; nth++) writeForeign(root, `f${nth}`);
  let looks = 0;
  let stopped: FileFacts | null = null;
  const factsOf = (path: string): FileFacts | null => nodeFiles.facts(path);
  const files = {
    ...nodeFiles,
    facts(path: string): FileFacts | null {
      return path.endsWith("/sessions") ? (stopped ?? factsOf(path)) : factsOf(path);
    },
    names(path: string): readonly string[] {
      if (path.endsWith("/sessions")) looks++;
      return nodeFiles.names(path);
    },
  };
  const store = createJsonlStore({ root, files, sessionsJson: false });
  expect((await store.list({ limit: 1 })).sessions).toHaveLength(Math.min(count, 1));
  looks = 0;
  const stopClock = (): void => void (stopped = factsOf(`${root}/agents/main/sessions`));
  return { store, looks: () => looks, stopClock };
}

describe("new sessions", () => {
  it.for([10, 1000, 3000])(
    "are made among %i others without a look at each of those",
    { tags: ["slow"] },
    async (count) => {
      const { store, looks } = await storeAmong(newFolder(), count);
      const beganMs = performance.now();
      for (let nth = 0; nth < 40; nth++) {
        // Who makes a session has mostly asked for it first.
        expect(await store.load(refOf(`n${nth}`))).toBeNull();
        await store.save(refOf(`n${nth}`), { sessionId: `n${nth}` }, { ifRevision: null });
      }
      const seconds = (performance.now() - beganMs) / 1000;
      // A small folder is looked through for each: it costs nothing, and nothing of others is seen later than it could be.
      if (count > 256) expect(looks()).toBeLessThanOrEqual(3 + seconds);
      expect(await store.load(refOf("n39"))).toMatchObject({ sessionId: "n39" });
      await store.close();
    },
  );

  it("keep nobody from a transcript that another program made between them", async () => {
    const root = newFolder();
    const { store } = await storeAmong(root, 400);
    for (let nth = 0; nth < 5; nth++) {
      expect(await store.load(refOf(`n${nth}`))).toBeNull();
      await store.save(refOf(`n${nth}`), { sessionId: `n${nth}` }, { ifRevision: null });
      // A later tick of the clock that file systems give their times by.
      await pause(20);
      expect(await store.load(writeForeign(root, `late${nth}`))).toMatchObject({ sessionId: `late${nth}` });
    }
    await store.close();
  });

  it("hide one of the same tick for a second at most", { tags: ["slow"] }, async () => {
    const root = newFolder();
    const { store, stopClock } = await storeAmong(root, 400);
    expect(await store.load(refOf("one"))).toBeNull();
    const beganMs = performance.now();
    await store.save(refOf("one"), { sessionId: "one" }, { ifRevision: null });
    stopClock();
    const ref = writeForeign(root, "late");
    if ((await store.load(ref)) !== null) expect(performance.now() - beganMs).toBeGreaterThan(900);
    while ((await store.load(ref)) === null && performance.now() - beganMs < 10_000) await pause(50);
    expect(await store.load(ref)).toMatchObject({ sessionId: "late" });
    await store.close();
  });
});

describe("purges that come together", () => {
  it.for([2, 100])("are %i and write the list of sessions again once for all", async (count) => {
    const root = newFolder();
    let rewrites = 0;
    const files = {
      ...nodeFiles,
      rename(from: string, to: string): void {
        if (to.endsWith("/entries.log")) rewrites++;
        nodeFiles.rename(from, to);
      },
    };
    const store = createJsonlStore({ root, files, sessionsJson: false });
    const names = Array.from({ length: count }, (_, nth) => `p${nth}`);
    for (const name of names) {
      await store.save(refOf(name), { sessionId: name, label: "hidden" }, { ifRevision: null });
      await store.append(refOf(name), [userDraft("hidden")]);
    }
    await store.save(mainRef, { sessionId: "stays" }, { ifRevision: null });
    await store.append(mainRef, [userDraft("what stays")]);
    await Promise.all(names.map((name) => store.remove(refOf(name), { purge: true })));
    expect(rewrites).toBe(1);
    const holding = filesBelow(root).filter((path) => readFileSync(`${root}/${path}`).includes("hidden"));
    expect(holding).toEqual([]);
    expect(await store.load(mainRef)).toMatchObject({ sessionId: "stays", messageCount: 1 });
    await store.close();
    await using again = createJsonlStore({ root });
    expect((await again.list({ state: "any" })).sessions.map(({ ref }) => ref.key)).toEqual([mainRef.key]);
  });

  it("each name their own error where the disk fails, and are finished by the next", async () => {
    const root = newFolder();
    let isFailing = false;
    const files = {
      ...nodeFiles,
      rename(from: string, to: string): void {
        if (isFailing && to.endsWith("/entries.log")) throw Object.assign(new Error("EIO"), { code: "EIO" });
        nodeFiles.rename(from, to);
      },
    };
    const store = createJsonlStore({ root, files, sessionsJson: false });
    const names = ["one", "two", "three"];
    for (const name of names) await store.save(refOf(name), { sessionId: name, label: "hidden" }, { ifRevision: null });
    isFailing = true;
    const [first, ...others] = await Promise.allSettled(
      names.slice(0, 2).map((name) => store.remove(refOf(name), { purge: true })),
    );
    for (const one of [first, ...others])
      expect(one).toMatchObject({ status: "rejected", reason: { code: "STORE_IO", outcome: "unknown" } });
    isFailing = false;
    await store.remove(refOf("three"), { purge: true });
    expect(filesBelow(root).filter((path) => readFileSync(`${root}/${path}`).includes("hidden"))).toEqual([]);
    await store.close();
  });

  it("leave the archived transcript of another session whose id theirs is called by", async () => {
    const root = newFolder();
    const store = createJsonlStore({ root, sessionsJson: false });
    await store.save(mainRef, { sessionId: "f2" }, { ifRevision: null });
    await store.append(mainRef, [userDraft("archived")]);
    await store.remove(mainRef);
    writeForeign(root, "f2");
    const [listed] = (await store.list()).sessions;
    expect(listed?.sessionId).not.toBe("f2");
    if (listed !== undefined) await store.remove(listed.ref, { purge: true });
    expect(await store.load({ ...mainRef, archiveId: "f2" })).toMatchObject({ messageCount: 1 });
    expect((await store.list({ state: "any" })).sessions).toHaveLength(1);
    await store.close();
  });
});

describe("a record that more sessions share than are held open", () => {
  it("is redacted in all of them, with the fields that repeat it", async () => {
    const root = newFolder();
    await using store = createJsonlStore({ root });
    const ref = refOf("origin");
    await store.save(ref, { sessionId: "origin", label: "planted" }, { ifRevision: null });
    const { records } = await store.append(ref, [userDraft("planted"), userDraft("kept")]);
    for (let nth = 0; nth < 65; nth++) await store.fork?.fork(ref, refOf(`fork${nth}`), { sessionId: `fork${nth}` });
    const result = await store.redact(ref, [records[0]?.id ?? ""], { reason: "test", entryFields: ["label"] });
    expect(result.seqs).toEqual([1]);
    const left = filesBelow(root).filter((path) => readFileSync(`${root}/${path}`).includes("planted"));
    expect(left).toEqual([]);
  });
});
