import { execFileSync } from "node:child_process";
import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sessionRef, type SessionRef } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { simulatedStore } from "./crash-explorer.ts";
import { crashStates } from "./crash-states.ts";
import { faultyFiles } from "./faulty-files.ts";
import { mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { createSimulatedDisk, systemError, type DiskImage } from "./simulated-disk.ts";
import { filesBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

/** Files below the root with the word in them. */
function holding(root: string, word: string): readonly string[] {
  return filesBelow(root).filter((path) => !path.includes("/locks/") && readFileSync(`${root}/${path}`).includes(word));
}

async function all<T>(items: AsyncIterable<T> | undefined): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items ?? []) found.push(item);
  return found;
}

/** By another process. */
function change(root: string, how: "redacted" | "purged"): void {
  execFileSync(process.execPath, [join(import.meta.dirname, "change-child.ts"), root, how], { timeout: 60_000 });
}

describe.for(["redacted", "purged"] as const)("what was %s", (how) => {
  it("is in no copy that a repair made, nor in what it removed", { tags: ["slow"] }, async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    await store.append(mainRef, [{ id: "secret", ...userDraft("hidden") }, userDraft("plain")]);
    appendFileSync(transcriptOf(root), "hidden in no record\n");
    await all(store.maintenance?.repair());
    await store.close();
    expect(holding(root, "hidden").filter((path) => path.includes("/repaired/"))).toHaveLength(2);
    change(root, how);
    // The line that was no record of the session was not redacted, and is where it was.
    expect(holding(root, "hidden")).toEqual(how === "purged" ? [] : ["agents/main/sessions/s1.jsonl"]);
    expect(holding(root, '"hidden"')).toEqual([]);
  });

  it(
    "is in no file that a process left which died while it wrote, repaired or forked",
    { tags: ["slow"] },
    async () => {
      const root = newFolder();
      const store = await storeWithSession(root);
      await store.append(mainRef, [{ id: "secret", ...userDraft("hidden") }]);
      const otherRef = sessionRef({ key: "agent:main:other" });
      await store.save(otherRef, { sessionId: "s10" }, { ifRevision: null });
      await store.append(otherRef, [userDraft("theirs")]);
      await store.close();
      const own = `${root}/agents/main/throughline`;
      mkdirSync(`${own}/repaired`, { recursive: true });
      const left = ["s1.jsonl.tmp", "s1.tmp", "repaired/s1.jsonl.tmp", "torn/s1.jsonl.fork-1767323045006-x"];
      for (const name of left) copyFileSync(transcriptOf(root), `${own}/${name}`);
      const theirs = ["s10.jsonl.tmp", "repaired/s10.jsonl.tmp", "torn/s10.jsonl.1767323045006.5"];
      for (const name of theirs) copyFileSync(transcriptOf(root, "s10"), `${own}/${name}`);
      change(root, how);
      expect(holding(root, "hidden")).toEqual([]);
      for (const name of theirs) expect(existsSync(`${own}/${name}`)).toBe(true);
    },
  );

  it("is in no copy either that a power cut could bring back", async () => {
    const sessions = "/store/agents/main/sessions";
    const folders = ["/", "/store"].map((path) => [path, null] as const);
    const disk = createSimulatedDisk(new Map(folders));
    const writer = simulatedStore(disk, { called: "w" });
    await writer.save(mainRef, { sessionId: "s1" }, { ifRevision: null });
    await writer.append(mainRef, [{ id: "secret", ...userDraft("hidden") }]);
    const handle = disk.files.open(`${sessions}/s1.jsonl`, "append");
    disk.files.write(handle, Buffer.from('{"type":"message","message":"hidden'));
    await writer.append(mainRef, [userDraft("behind a torn tail")]);
    // A fork that fails at the last moment has made a copy and removed it.
    disk.onCall = (call) => {
      if (call === "rename") throw systemError("ENOSPC");
      return undefined;
    };
    const target = sessionRef({ key: "agent:main:forked" });
    await expect(writer.fork?.fork(mainRef, target, { sessionId: "f1" })).rejects.toMatchObject({ code: "STORE_FULL" });
    disk.onCall = () => undefined;
    const said = (image: DiskImage): readonly string[] =>
      [...image].flatMap(([path, bytes]) => (Buffer.from(bytes ?? []).includes("hidden") ? [path] : []));
    expect(said(disk.image()).length).toBe(2);
    if (how === "redacted") await writer.redact(mainRef, ["secret"], { reason: "asked" });
    else await writer.remove(mainRef, { purge: true });
    for (const image of crashStates(disk.moment(), { cutEveryBytes: 1000 })) expect(said(image)).toEqual([]);
    await writer.close();
  });

  it("while a repair reads it is in no copy of that repair", { tags: ["slow"] }, async () => {
    const root = newFolder();
    const other = await storeWithSession(root);
    await other.append(mainRef, [{ id: "secret", ...userDraft("hidden") }]);
    await other.close();
    appendFileSync(transcriptOf(root), "no record\n");
    const faults = faultyFiles();
    let isChanged = false;
    const { files } = faults;
    const store = createJsonlStore({
      root,
      files: {
        ...files,
        flushNow(handle) {
          files.flushNow(handle);
          // The copy is whole by now, and not yet kept.
          if (!isChanged) change(root, how);
          isChanged = true;
        },
      },
    });
    const findings = await all(store.maintenance?.repair());
    await store.close();
    expect(isChanged).toBe(true);
    expect(holding(root, "hidden")).toEqual([]);
    expect(findings.some(({ code }) => code === "LINE_MALFORMED")).toBe(how === "redacted");
  });
});

describe("a purge", () => {
  it("leaves nothing of the entry in what was torn off the entries log", { tags: ["slow"] }, async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    await store.close();
    writeFileSync(`${root}/agents/main/throughline/torn/entries.log.1767323045006.5`, '{"op":"save","label":"hidden');
    change(root, "purged");
    expect(holding(root, "hidden")).toEqual([]);
  });
});

/** The disk fails when a transcript is to go: the purge is committed, and its bytes are still there. */
async function purgeHalf(root: string, ref: SessionRef): Promise<void> {
  const files: Files = {
    ...nodeFiles,
    remove(path) {
      if (path.includes(".jsonl")) throw Object.assign(new Error("EIO"), { code: "EIO", syscall: "unlink" });
      nodeFiles.remove(path);
    },
  };
  const store = createJsonlStore({ root, files });
  await expect(store.remove(ref, { purge: true })).rejects.toMatchObject({ code: "STORE_IO", outcome: "unknown" });
  await store.close();
}

async function keysOf(root: string): Promise<readonly string[]> {
  const store = createJsonlStore({ root });
  const { sessions } = await store.list();
  await store.close();
  return sessions.map(({ ref }) => ref.key);
}

describe("a purge that was cut off", () => {
  it("is finished for a transcript of another name than the session's", async () => {
    const root = newFolder();
    const sessions = `${root}/agents/main/sessions`;
    mkdirSync(sessions, { recursive: true });
    const timestamp = "2026-01-02T03:04:05.006Z";
    const message = { role: "user", content: "hidden" };
    const lines = [
      { type: "session", version: 3, id: "abc", timestamp, cwd: "/" },
      { type: "message", id: "m", parentId: null, timestamp, message },
    ].map((line) => `${JSON.stringify(line)}\n`);
    writeFileSync(`${sessions}/abc-topic-5.jsonl`, lines.join(""));
    const entry = { sessionId: "abc", sessionFile: `${sessions}/abc-topic-5.jsonl`, updatedAt: 5 };
    writeFileSync(`${sessions}/sessions.json`, JSON.stringify({ [mainRef.key]: entry }));
    expect(await keysOf(root)).toEqual([mainRef.key]);
    await purgeHalf(root, mainRef);
    expect(holding(root, "hidden")).toHaveLength(1);
    expect(await keysOf(root)).toEqual([]);
    expect(holding(root, "hidden")).toEqual([]);
  });

  it("is finished when another session is purged before anybody looks", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    await store.append(mainRef, [userDraft("hidden")]);
    const otherRef = sessionRef({ key: "agent:main:other" });
    await store.save(otherRef, { sessionId: "s2" }, { ifRevision: null });
    await store.close();
    await purgeHalf(root, mainRef);
    const again = createJsonlStore({ root });
    await again.remove(otherRef, { purge: true });
    await again.close();
    expect(holding(root, "hidden")).toEqual([]);
    expect(await keysOf(root)).toEqual([]);
  });

  it("does not keep a store that cannot be written from being read", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const otherRef = sessionRef({ key: "agent:main:other" });
    await store.save(otherRef, { sessionId: "s2" }, { ifRevision: null });
    await store.close();
    await purgeHalf(root, mainRef);
    const refuse = (): never => {
      throw Object.assign(new Error("EROFS"), { code: "EROFS", syscall: "open" });
    };
    const files: Files = {
      ...nodeFiles,
      open: (path, mode) => (mode === "read" ? nodeFiles.open(path, mode) : refuse()),
      remove: (path) => (existsSync(path) ? refuse() : undefined),
      isWritable: () => false,
    };
    const reader = createJsonlStore({ root, files });
    expect((await reader.list()).sessions.map(({ sessionId }) => sessionId)).toEqual(["s2"]);
    await reader.close();
  });
});
