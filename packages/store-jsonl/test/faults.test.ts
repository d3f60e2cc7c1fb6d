import { chmodSync, linkSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sessionRef, type SessionEvent } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type FileFacts, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { faultyFiles } from "./faulty-files.ts";
import { findingCodesOf, mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { filesBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

describe("a disk that fails", () => {
  it("leaves nothing of an append it had no room for, and takes the next one", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    const store = await storeWithSession(root, { files: faults.files, sessionsJson: false });
    await store.append(mainRef, [userDraft("first")]);
    const before = readFileSync(transcriptOf(root));
    for (const left of [0, 1, 50, 200]) {
      faults.limitBytes(left);
      await expect(store.append(mainRef, [userDraft("a"), userDraft("b")])).rejects.toMatchObject({
        code: "STORE_FULL",
        outcome: "not-applied",
        retryable: true,
      });
      faults.reset();
      expect(readFileSync(transcriptOf(root))).toEqual(before);
    }
    await store.append(mainRef, [userDraft("second")]);
    expect(await textsOf(store)).toEqual(["first", "second"]);
    await store.close();
  });

  it("finishes a write that was only cut short", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    const { files } = faults;
    const store = await storeWithSession(root, {
      sessionsJson: false,
      files: { ...files, write: (handle, bytes) => files.write(handle, bytes.subarray(0, 7)) },
    });
    await store.append(mainRef, [userDraft("in pieces")]);
    expect(await textsOf(store)).toEqual(["in pieces"]);
    await store.close();
    expect(await textsOf(createJsonlStore({ root }))).toEqual(["in pieces"]);
  });

  it("says that the outcome is unknown when even taking back fails, and reads anew before it goes on", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    const store = await storeWithSession(root, { files: faults.files, sessionsJson: false });
    await store.append(mainRef, [userDraft("first")]);
    faults.limitBytes(40);
    faults.failNext("truncate", "EIO");
    await expect(store.append(mainRef, [userDraft("lost")])).rejects.toMatchObject({ outcome: "unknown" });
    faults.reset();
    await store.append(mainRef, [userDraft("second")]);
    expect(await textsOf(store)).toEqual(["first", "second"]);
    await store.close();
  });

  it("acknowledges nothing whose flush failed, and lets the retry with its key find out", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    const store = await storeWithSession(root, { files: faults.files, sessionsJson: false });
    faults.failNext("flush", "EIO");
    const append = store.append(mainRef, [userDraft("once")], { idempotencyKey: "k" });
    await expect(append).rejects.toMatchObject({ code: "STORE_IO", outcome: "unknown" });
    const again = await store.append(mainRef, [userDraft("once")], { idempotencyKey: "k" });
    expect(again.records[0]?.seq).toBe(1);
    expect(await textsOf(store)).toEqual(["once"]);
    await store.close();
  });

  it("fails every append that waits for the flush that failed", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    const store = await storeWithSession(root, { files: faults.files, sessionsJson: false });
    faults.failNext("flush", "EIO");
    const all = await Promise.allSettled(
      Array.from({ length: 8 }, (_, index) => store.append(mainRef, [userDraft(`n${index}`)])),
    );
    const acknowledged = all.flatMap((one, index) => (one.status === "fulfilled" ? [`n${index}`] : []));
    expect(acknowledged.length).toBeLessThan(8);
    const seen = await textsOf(store);
    expect(acknowledged.every((text) => seen.includes(text))).toBe(true);
    await store.append(mainRef, [userDraft("after")]);
    expect((await textsOf(store)).at(-1)).toBe("after");
    await store.close();
  });

  it("leaves no file behind for a session whose entry could not be written", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    const store = await storeWithSession(root, { files: faults.files, sessionsJson: false });
    const other = sessionRef({ key: "agent:main:other" });
    // Enough for the header and not for the line of the log.
    faults.limitBytes(160);
    await expect(
      store.save(other, { sessionId: "s2", label: "x".repeat(200) }, { ifRevision: null }),
    ).rejects.toMatchObject({ code: "STORE_FULL" });
    faults.reset();
    expect(filesBelow(`${root}/agents/main/sessions`)).toEqual(["s1.jsonl"]);
    expect(await store.load(other)).toBeNull();
    await store.save(other, { sessionId: "s2" }, { ifRevision: null });
    await store.close();
  });

  it("counts a line that another program slipped in between", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    const store = await storeWithSession(root, { files: faults.files, sessionsJson: false });
    await store.append(mainRef, [userDraft("first")]);
    const foreign = {
      type: "message",
      id: "abcd1234",
      parentId: null,
      timestamp: "2026-01-02T03:04:05.006Z",
      message: { role: "user", content: "theirs" },
    };
    faults.beforeNextWrite(() => writeFileSync(transcriptOf(root), `${JSON.stringify(foreign)}\n`, { flag: "a" }));
    const { records, head } = await store.append(mainRef, [userDraft("second")]);
    expect(records[0]?.seq).toBe(3);
    expect(head.lastSeq).toBe(3);
    expect(await textsOf(store)).toEqual(["first", "theirs", "second"]);
    await store.close();
  });
});

describe("permissions and paths", () => {
  it("makes folders for the owner alone, whatever the umask", async () => {
    const root = join(newFolder(), "store");
    const before = process.umask(0o022);
    try {
      const store = await storeWithSession(root);
      await store.append(mainRef, [userDraft("first")]);
      await store.close();
    } finally {
      process.umask(before);
    }
    const modes = filesBelow(root).map((path) => [path, statSync(join(root, path)).mode & 0o777]);
    expect(modes.filter(([, mode]) => mode !== 0o600)).toEqual([]);
    expect(modes.map(([path]) => path)).toContain("agents/main/sessions/sessions.json");
    for (const folder of [
      "",
      "agents",
      "agents/main",
      "agents/main/sessions",
      "agents/main/throughline",
      "agents/main/throughline/locks",
      "agents/main/throughline/torn",
    ]) {
      expect(statSync(join(root, folder)).mode & 0o777, folder).toBe(0o700);
    }
  });

  it("goes through no symbolic link below its root", async () => {
    const root = newFolder();
    const outside = newFolder();
    await (await storeWithSession(root)).close();
    symlinkSync(outside, `${root}/agents/linked`);
    const store = createJsonlStore({ root });
    const linked = sessionRef({ key: "agent:linked:main" });
    await expect(store.save(linked, { sessionId: "x" }, { ifRevision: null })).rejects.toMatchObject({
      code: "PATH_UNSAFE",
    });
    writeFileSync(`${outside}/secret.jsonl`, "{}\n");
    symlinkSync(`${outside}/secret.jsonl`, `${root}/agents/main/sessions/s9.jsonl`);
    const other = sessionRef({ key: "agent:main:other" });
    await expect(store.save(other, { sessionId: "s9" }, { ifRevision: null })).rejects.toMatchObject({
      code: "SESSION_EXISTS",
    });
    for (const sessionId of ["../x", "a/b", "/etc/passwd", "a\0b", ".."]) {
      await expect(store.save(other, { sessionId }, { ifRevision: null })).rejects.toMatchObject({
        code: "SESSION_ID_INVALID",
      });
    }
    expect((await store.list({ state: "any" })).sessions.map((session) => session.sessionId)).toEqual(["s1"]);
    await store.close();
    expect(readFileSync(`${outside}/secret.jsonl`, "utf8")).toBe("{}\n");
  });

  it.each(["", "/sessions", "/throughline"])("has every other agent where a link is agents/other%s", async (place) => {
    const root = newFolder();
    const events: SessionEvent[] = [];
    await (await storeWithSession(root)).close();
    mkdirSync(join(root, "agents/other", place, ".."), { recursive: true });
    symlinkSync(newFolder(), join(root, "agents/other", place));
    const store = createJsonlStore({ root, onEvent: (event) => void events.push(event) });
    expect((await store.list()).sessions.map((session) => session.sessionId)).toEqual(["s1"]);
    expect(findingCodesOf(events)).toEqual(["FILE_UNREADABLE"]);
    for await (const finding of store.maintenance?.verify() ?? []) expect(finding.severity).toBe("info");
    await store.maintenance?.backup(`${newFolder()}/copy`);
    await expect(store.list({ agentId: "other" })).rejects.toMatchObject({ code: "PATH_UNSAFE" });
    await store.close();
  });

  it("refuses an agent whose folder differs by case only", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const twin = sessionRef({ key: "agent:Main:main" });
    await expect(store.save(twin, { sessionId: "x" }, { ifRevision: null })).rejects.toMatchObject({
      code: "ID_CASE_COLLISION",
    });
    await store.close();
  });

  it("does not make a root it was told not to make", async () => {
    const root = join(newFolder(), "nowhere");
    const store = createJsonlStore({ root, create: false });
    await expect(store.load(mainRef)).rejects.toMatchObject({ code: "STORE_NOT_FOUND" });
    await expect(store.list()).rejects.toMatchObject({ code: "STORE_NOT_FOUND" });
    mkdirSync(root);
    chmodSync(root, 0o700);
    expect(await store.load(mainRef)).toBeNull();
    expect(filesBelow(root)).toEqual([]);
    await store.close();
  });

  it("says of a folder it may not look into what it is, whatever is asked", async () => {
    const root = newFolder();
    await (await storeWithSession(root)).close();
    const sessions = `${root}/agents/main/sessions`;
    const facts = (path: string): FileFacts | null => {
      if (!path.startsWith(`${sessions}/`)) return nodeFiles.facts(path);
      throw Object.assign(new Error("permission denied"), { code: "EACCES", syscall: "lstat", path });
    };
    await using store = createJsonlStore({ root, files: { ...nodeFiles, facts } });
    const code = "STORE_READ_ONLY";
    await expect(store.load(mainRef)).rejects.toMatchObject({ code });
    await expect(store.list()).rejects.toMatchObject({ code });
    await expect(store.append(mainRef, [userDraft("x")])).rejects.toMatchObject({ code });
    await expect(store.read(mainRef)[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code });
    await expect(
      store
        .read(sessionRef({ key: "agent:main:other" }))
        [Symbol.asyncIterator]()
        .next(),
    ).rejects.toMatchObject({
      code,
    });
  });

  it("appends through every name of a transcript, and redacts what is the session's", async () => {
    const root = newFolder();
    await using store = await storeWithSession(root);
    await store.append(mainRef, [userDraft("one")]);
    linkSync(transcriptOf(root), `${root}/second-name`);
    const { records } = await store.append(mainRef, [userDraft("secret")]);
    expect(readFileSync(`${root}/second-name`)).toEqual(readFileSync(transcriptOf(root)));
    await store.redact(mainRef, [records[0]?.id ?? ""], { reason: "asked" });
    expect(readFileSync(transcriptOf(root), "utf8")).not.toContain("secret");
    // What somebody linked elsewhere is a copy of theirs by now; the session goes on without it.
    await store.append(mainRef, [userDraft("after")]);
    expect(readFileSync(`${root}/second-name`, "utf8")).not.toContain("after");
    const state = await store.load(mainRef);
    expect(state?.head.lastSeq).toBe(3);
  });
});
