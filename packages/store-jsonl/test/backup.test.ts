import { existsSync, readdirSync } from "node:fs";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, textsOf, userDraft } from "./session-fixture.ts";
import { filesBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

async function verified(root: string): Promise<readonly string[]> {
  const store = createJsonlStore({ root, index: false, sessionsJson: false });
  const found: string[] = [];
  for await (const { code } of store.maintenance!.verify({ full: true })) found.push(code);
  await store.close();
  return found;
}

describe("a backup", () => {
  it("is a store of its own with everything in it, made while others write", { timeout: 60_000 }, async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    for (let index = 0; index < 50; index++)
      await store.append(mainRef, [userDraft(`n${index} ${"x".repeat(50_000)}`)]);
    let isDone = false;
    const writing = (async (): Promise<number> => {
      let count = 50;
      while (!isDone) await store.append(mainRef, [userDraft(`n${count++} more`)], { entry: { totalTokens: count } });
      return count;
    })();
    const copy = `${newFolder()}/deep/copy`;
    const { sizeBytes } = await store.maintenance!.backup(copy);
    isDone = true;
    const written = await writing;
    expect(sizeBytes).toBeGreaterThan(2_500_000);
    await expect(store.maintenance!.backup(copy)).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await store.close();
    expect(await verified(copy)).toEqual([]);
    const again = createJsonlStore({ root: copy });
    const texts = await textsOf(again);
    expect(texts.length).toBeGreaterThanOrEqual(50);
    expect(texts.length).toBeLessThanOrEqual(written);
    expect(texts.map((text) => text.split(" ")[0])).toEqual(Array.from(texts, (_text, index) => `n${index}`));
    await again.close();
    expect(filesBelow(copy).filter((path) => path.includes("/locks/") && path.length < 10)).toEqual([]);
  });

  it.each([
    ["a file cannot be made", "open"],
    ["a file cannot be written", "write"],
    ["the last name cannot be given", "rename"],
  ] as const)("leaves nothing, not even a folder, when %s", async (_, failing) => {
    const root = newFolder();
    await (await storeWithSession(root)).close();
    const beside = newFolder();
    let isFailing = false;
    const failed = (): never => {
      throw Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" });
    };
    const files: Files = {
      ...nodeFiles,
      open: (path, mode) =>
        isFailing && failing === "open" && mode === "create" && path.endsWith(".jsonl")
          ? failed()
          : nodeFiles.open(path, mode),
      write: (handle, bytes) => (isFailing && failing === "write" ? failed() : nodeFiles.write(handle, bytes)),
      rename: (from, to) =>
        isFailing && failing === "rename" && to.endsWith("/copy") ? failed() : nodeFiles.rename(from, to),
    };
    const store = createJsonlStore({ root, files, index: false, sessionsJson: false });
    expect(await textsOf(store)).toHaveLength(0);
    isFailing = true;
    await expect(store.maintenance!.backup(`${beside}/copy`)).rejects.toMatchObject({ code: "STORE_FULL" });
    isFailing = false;
    expect(readdirSync(beside)).toEqual([]);
    await store.maintenance!.backup(`${beside}/copy`);
    await store.close();
    expect(readdirSync(beside)).toEqual(["copy"]);
  });

  it("has the transcript of a session that is archived meanwhile", async () => {
    const root = newFolder();
    const other = await storeWithSession(root);
    await other.append(mainRef, [userDraft("kept")]);
    let archived: Promise<unknown> | null = null;
    const files: Files = {
      ...nodeFiles,
      open(path, mode) {
        // The entries are in the copy, and say what the transcript is called now.
        if (mode === "read" && path.endsWith("/sessions.json")) archived ??= other.move(mainRef, { kind: "archive" });
        return nodeFiles.open(path, mode);
      },
    };
    const store = createJsonlStore({ root, files });
    const copy = `${newFolder()}/copy`;
    await store.maintenance!.backup(copy);
    await archived;
    await Promise.all([store.close(), other.close()]);
    const again = createJsonlStore({ root: copy });
    expect(await textsOf(again)).toEqual(["kept"]);
    await again.close();
  });

  it("has sessions.json with what it is compared with, whoever writes both meanwhile", async () => {
    const root = newFolder();
    const first = await storeWithSession(root);
    await first.append(mainRef, [], { entry: { label: "old" } });
    await first.close();
    const other = createJsonlStore({ root, derivedDelayMs: Infinity });
    await other.append(mainRef, [], { entry: { label: "new" } });
    const before = await other.load(mainRef);
    let isOpened = false;
    let publishing: Promise<void> | null = null;
    const files: Files = {
      ...nodeFiles,
      open(path, mode) {
        isOpened ||= mode === "read" && path === `${root}/agents/main/sessions/sessions.json`;
        return nodeFiles.open(path, mode);
      },
      async flush(handle) {
        // Closing writes sessions.json, while the backup waits for the disk.
        if (isOpened) await (publishing ??= other.close());
        await nodeFiles.flush(handle);
      },
    };
    const store = createJsonlStore({ root, files });
    const copy = `${newFolder()}/copy`;
    await store.maintenance!.backup(copy);
    await store.close();
    expect(publishing).not.toBeNull();
    await using again = createJsonlStore({ root: copy });
    expect(await again.load(mainRef)).toEqual(before);
  });

  it("that did not come to its end is not there", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    await store.append(mainRef, [userDraft("x".repeat(3_000_000))]);
    const folder = newFolder();
    const abort = new AbortController();
    const backup = store.maintenance!.backup(`${folder}/copy`, { signal: abort.signal });
    abort.abort();
    await expect(backup).rejects.toMatchObject({ code: "ABORTED" });
    expect(existsSync(`${folder}/copy`)).toBe(false);
    expect(filesBelow(folder)).toEqual([]);
    await store.maintenance!.backup(`${folder}/copy`);
    expect(await verified(`${folder}/copy`)).toEqual([]);
    await store.close();
  });
});

describe("a backup beside a purge", () => {
  it("names no session whose transcript it does not have", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const other = { ...mainRef, key: "agent:main:other" };
    await store.save(other, { sessionId: "zother" }, { ifRevision: null });
    await store.append(other, [userDraft("purged")]);
    await store.append(mainRef, [userDraft("kept")]);
    await store.close();
    let purge: (() => Promise<void>) | null = async () => {
      await using beside = createJsonlStore({ root });
      await beside.remove(other, { purge: true });
    };
    let entriesLog: number | null = null;
    const files: Files = {
      ...nodeFiles,
      open(path, how) {
        const handle = nodeFiles.open(path, how);
        if (path.includes("copy.part-") && path.endsWith("/entries.log")) entriesLog = handle;
        return handle;
      },
      async flush(handle) {
        // The entries are copied by then, and the transcripts are not.
        const now = handle === entriesLog ? purge : null;
        if (now !== null) purge = null;
        await now?.();
        return nodeFiles.flush(handle);
      },
    };
    await using reader = createJsonlStore({ root, files });
    const copy = `${newFolder()}/copy`;
    await reader.maintenance!.backup(copy);
    expect(purge).toBeNull();
    expect(await verified(copy)).toEqual([]);
    await using again = createJsonlStore({ root: copy });
    expect((await again.list({ state: "any" })).sessions.map(({ ref }) => ref.key)).toEqual([mainRef.key]);
    expect(filesBelow(copy).filter((path) => path.includes("zother"))).toEqual([]);
  });
});

describe("a session whose id looks like an archive of another", () => {
  it("is refused: it would go with the other one", async () => {
    await using store = await storeWithSession(newFolder());
    for (const sessionId of ["a.jsonl.reset.x", "a.jsonl.deleted.2026-01-01T00-00-00.000Z"]) {
      const invalid = { code: "SESSION_ID_INVALID", outcome: "not-applied" };
      const other = { ...mainRef, key: "agent:main:other" };
      await expect(store.save(other, { sessionId }, { ifRevision: null })).rejects.toMatchObject(invalid);
      await expect(store.fork?.fork(mainRef, other, { sessionId })).rejects.toMatchObject(invalid);
    }
  });
});
