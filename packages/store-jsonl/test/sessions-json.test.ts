import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { sessionRef, type SessionEvent } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { findingCodesOf, mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { filesBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const key = mainRef.key;

type Entries = Record<string, Record<string, unknown>>;

function viewOf(root: string): Entries {
  return JSON.parse(readFileSync(`${root}/agents/main/sessions/sessions.json`, "utf8")) as Entries;
}

/** Changes the file as OpenClaw does: the whole of it, through a temporary file. */
function editView(root: string, change: (entries: Entries) => void): void {
  const entries = viewOf(root);
  change(entries);
  const path = `${root}/agents/main/sessions/sessions.json`;
  writeFileSync(`${path}.tmp`, JSON.stringify(entries, null, 2));
  renameSync(`${path}.tmp`, path);
}

describe("sessions.json", () => {
  it("holds the entries of the active sessions, with what OpenClaw needs", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    await store.append(mainRef, [userDraft("hi")], { entry: { label: "main", skillsSnapshot: { a: [1] } } });
    const state = await store.load(mainRef);
    await store.close();
    expect(viewOf(root)).toEqual({
      [key]: {
        sessionId: "s1",
        sessionFile: transcriptOf(root),
        label: "main",
        skillsSnapshot: { a: [1] },
        updatedAt: state?.updatedAtMs,
      },
    });
  });

  it("is read for what another program changed, field by field", async () => {
    const root = newFolder();
    await (await storeWithSession(root)).close();
    const store = createJsonlStore({ root });
    await store.append(mainRef, [userDraft("hi")], { entry: { label: "ours", model: "m1" } });
    await store.close();
    editView(root, (entries) =>
      Object.assign(entries[key] ?? {}, { sendPolicy: "deny", unknownField: { deep: [1, { a: null }] } }),
    );
    const again = createJsonlStore({ root });
    await again.append(mainRef, [userDraft("meanwhile")], { entry: { model: "m2" } });
    const state = await again.load(mainRef);
    expect(state?.entry).toMatchObject({
      label: "ours",
      model: "m2",
      sendPolicy: "deny",
      unknownField: { deep: [1, { a: null }] },
    });
    await again.close();
    expect(viewOf(root)[key]).toMatchObject({
      label: "ours",
      model: "m2",
      sendPolicy: "deny",
      unknownField: { deep: [1, { a: null }] },
    });
  });

  it("may be changed and changed back before it is written here again", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const other = sessionRef({ key: "agent:main:other" });
    await store.save(other, { sessionId: "s2" }, { ifRevision: null });
    await store.save(mainRef, { sessionId: "s1", label: "first" }, { ifRevision: 1 });
    await store.close();
    /** As another process of ours sees the entry, which reads and writes nothing. */
    const fieldsNow = async (): Promise<unknown> => {
      const reader = createJsonlStore({ root });
      const { label, abortedLastRun } = (await reader.load(mainRef))?.entry ?? {};
      await reader.close();
      return [label, abortedLastRun];
    };
    const edit = (fields: object): void => editView(root, (entries) => Object.assign(entries[key] ?? {}, fields));
    edit({ abortedLastRun: true, label: "second" });
    expect(await fieldsNow()).toEqual(["second", true]);
    edit({ label: "first" });
    editView(root, (entries) => delete entries[key]?.["abortedLastRun"]);
    expect(await fieldsNow()).toEqual(["first", undefined]);
    // Ours in between, which another field of theirs has nothing to do with.
    const writer = createJsonlStore({ root, sessionsJson: false });
    await writer.append(mainRef, [userDraft("hi")], { entry: { model: "ours" } });
    await writer.close();
    edit({ label: "third" });
    expect(await fieldsNow()).toEqual(["third", undefined]);
    const last = createJsonlStore({ root });
    await last.append(mainRef, [userDraft("again")]);
    await last.close();
    expect(viewOf(root)[key]).toMatchObject({ label: "third", model: "ours" });
    expect(viewOf(root)[key]).not.toHaveProperty("abortedLastRun");
  });

  const archivings: readonly (readonly [name: string, steps: readonly ("rename" | "drop" | "look")[]])[] = [
    ["renamed and left out", ["rename", "drop"]],
    ["left out and then renamed", ["drop", "look", "rename"]],
    ["renamed and then left out", ["rename", "look", "drop"]],
  ];

  it.each(archivings)("loses no record of a session that OpenClaw archives: %s", async (_name, steps) => {
    const root = newFolder();
    const events: SessionEvent[] = [];
    const store = await storeWithSession(root);
    await store.append(mainRef, [userDraft("kept")], { entry: { label: "kept" } });
    await store.close();
    const reader = createJsonlStore({ root, onEvent: (event) => events.push(event) });
    for (const step of steps) {
      if (step === "rename") renameSync(transcriptOf(root), `${transcriptOf(root)}.deleted.2026-01-01T00-00-00.000Z`);
      else if (step === "drop") editView(root, (entries) => delete entries[key]);
      else await reader.list({ state: "any" });
    }
    const archived = { ...mainRef, archiveId: "s1" };
    expect(await reader.load(mainRef)).toBeNull();
    expect(await reader.load(archived)).toMatchObject({ messageCount: 1, entry: { label: "kept" } });
    expect(await textsOf(reader, archived)).toEqual(["kept"]);
    expect((await reader.list({ state: "any" })).sessions.map(({ head }) => head.lastSeq)).toEqual([1]);
    await reader.move(archived, { kind: "restore" });
    await reader.append(mainRef, [userDraft("again")]);
    await reader.close();
    const again = createJsonlStore({ root, index: false });
    expect(await textsOf(again)).toEqual(["kept", "again"]);
    await again.close();
  });

  it("leaves nothing of a purged session in what was noted of it", async () => {
    const root = newFolder();
    await (await storeWithSession(root)).close();
    editView(root, (entries) => Object.assign(entries[key] ?? {}, { label: "only once" }));
    const store = createJsonlStore({ root });
    await store.load(mainRef);
    await store.remove(mainRef, { purge: true });
    expect(filesBelow(root).filter((path) => readFileSync(`${root}/${path}`).includes("only once"))).toEqual([]);
    await store.close();
  });

  it("takes nothing back that was saved here since, though nobody knows any more what it was compared with", async () => {
    const root = newFolder();
    const first = await storeWithSession(root);
    await first.append(mainRef, [], { entry: { label: "old" } });
    await first.close();
    rmSync(`${root}/agents/main/throughline/sessions-view.json`);
    rmSync(`${root}/agents/main/throughline/index.db`);
    await using store = createJsonlStore({ root, derivedDelayMs: Infinity, index: false });
    const { revision } = await store.append(mainRef, [], { entry: { label: "new" } });
    await using other = createJsonlStore({ root, index: false });
    expect(await other.load(mainRef)).toMatchObject({ revision, entry: { label: "new" } });
  });

  it("is never compared with what is still in the making, though it is read and written at once", async () => {
    const root = newFolder();
    const first = await storeWithSession(root);
    await first.append(mainRef, [], { entry: { label: "old" } });
    await first.close();
    const bases = new Set<number>();
    const [kept, written] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let flushed = 0;
    const files: Files = {
      ...nodeFiles,
      open(path, mode) {
        const handle = nodeFiles.open(path, mode);
        if (mode === "create" && path.includes("/sessions-view.json.")) bases.add(handle);
        return handle;
      },
      // The first keeps what both agree on, and has to wait until the third is there: what is written next.
      async flush(handle) {
        const number = bases.delete(handle) ? ++flushed : 0;
        if (number === 3) written.resolve();
        await (number === 1 ? written.promise : number === 3 ? kept.promise : null);
        await nodeFiles.flush(handle);
      },
    };
    await using store = createJsonlStore({ root, files, derivedDelayMs: 20 });
    await store.append(mainRef, [], { entry: { label: "new" } });
    editView(root, (entries) => Object.assign(entries[key] ?? {}, { other: 1 }));
    await store.list();
    await using other = createJsonlStore({ root, index: false });
    const seen = await other.load(mainRef);
    kept.resolve();
    expect(seen?.entry).toMatchObject({ label: "new", other: 1 });
  });

  it("may lose fields and keys by another program's hand", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const other = sessionRef({ key: "agent:main:other" });
    await store.save(other, { sessionId: "s2" }, { ifRevision: null });
    await store.append(mainRef, [userDraft("hi")], { entry: { label: "ours" } });
    await store.close();
    editView(root, (entries) => {
      delete entries[other.key];
      delete entries[key]?.["label"];
    });
    const again = createJsonlStore({ root });
    expect((await again.load(mainRef))?.entry).not.toHaveProperty("label");
    expect(await again.load(other)).toBeNull();
    expect((await again.load({ ...other, archiveId: "s2" }))?.archived).toBe(true);
    await again.close();
    expect(Object.keys(viewOf(root))).toEqual([key]);
  });

  it("brings sessions another program began, with and without a transcript", async () => {
    const root = newFolder();
    await (await storeWithSession(root)).close();
    const theirs = "agent:main:telegram:direct:42";
    editView(root, (entries) => (entries[theirs] = { sessionId: "t1", updatedAt: 1_700_000_000_000, label: "theirs" }));
    const store = createJsonlStore({ root });
    const { sessions } = await store.list({ sort: "key" });
    expect(sessions.map(({ ref, entry }) => [ref.key, entry.label])).toContainEqual([theirs, "theirs"]);
    await store.close();
    expect(viewOf(root)[theirs]).toEqual({ sessionId: "t1", updatedAt: 1_700_000_000_000, label: "theirs" });
    const header = { type: "session", version: 3, id: "t1", timestamp: "2026-01-02T03:04:05.006Z", cwd: "/" };
    const line = {
      type: "message",
      id: "aaaa0001",
      parentId: null,
      timestamp: "2026-01-02T03:04:06.006Z",
      message: { role: "user", content: "from afar" },
    };
    writeFileSync(transcriptOf(root, "t1"), `${JSON.stringify(header)}\n${JSON.stringify(line)}\n`);
    const again = createJsonlStore({ root });
    const state = await again.load(sessionRef({ key: theirs }));
    expect(state).toMatchObject({
      sessionId: "t1",
      messageCount: 1,
      entry: { label: "theirs" },
      head: { lastSeq: 2, headId: "aaaa0001" },
    });
    await again.close();
    expect(readFileSync(transcriptOf(root, "t1"), "utf8")).toBe(`${JSON.stringify(header)}\n${JSON.stringify(line)}\n`);
  });

  it("that is empty all of a sudden is taken for lost: nobody is archived, and it is written again", async () => {
    const root = newFolder();
    const other = sessionRef({ key: "agent:main:other" });
    const first = await storeWithSession(root);
    await first.save(other, { sessionId: "s2", sendPolicy: "deny" }, { ifRevision: null });
    await first.close();
    const before = viewOf(root);
    writeFileSync(`${root}/agents/main/sessions/sessions.json`, "{}");
    const events: SessionEvent[] = [];
    const store = createJsonlStore({ root, onEvent: (event) => void events.push(event) });
    expect((await store.list()).sessions.map(({ ref }) => ref.key).toSorted()).toEqual([key, other.key]);
    expect((await store.load(other))?.entry["sendPolicy"]).toBe("deny");
    expect(findingCodesOf(events)).toEqual(["INDEX_UNREADABLE"]);
    await store.append(mainRef, [userDraft("hi")]);
    await store.close();
    expect(Object.keys(viewOf(root)).toSorted()).toEqual(Object.keys(before).toSorted());
    expect(viewOf(root)[other.key]).toEqual(before[other.key]);
  });

  it("with an entry that is too deep is read but for that, and the entry stays as it is", async () => {
    const root = newFolder();
    await (await storeWithSession(root)).close();
    const path = `${root}/agents/main/sessions/sessions.json`;
    const deep = `{"sessionId":"deep","x":${"[".repeat(20_000)}${"]".repeat(20_000)}}`;
    const ours = JSON.stringify({ ...viewOf(root)[key], model: "theirs", updatedAt: Date.now() });
    writeFileSync(path, `{"agent:main:deep":${deep},${JSON.stringify(key)}:${ours}}`);
    const events: SessionEvent[] = [];
    const store = createJsonlStore({ root, onEvent: (event) => void events.push(event) });
    expect((await store.load(mainRef))?.entry["model"]).toBe("theirs");
    expect((await store.list()).sessions.length).toBe(1);
    expect(findingCodesOf(events)).toEqual(["ENTRY_UNREADABLE"]);
    await store.append(mainRef, [userDraft("hi")], { entry: { label: "ours" } });
    await store.close();
    const text = readFileSync(path, "utf8");
    expect(text).toContain(deep);
    expect(text).toContain('"label": "ours"');
    // Also one that was a session's of ours.
    writeFileSync(path, `{${JSON.stringify(key)}:${deep}}`);
    const again = createJsonlStore({ root });
    expect((await again.load(mainRef))?.entry["label"]).toBe("ours");
    await again.append(mainRef, [userDraft("ho")], { entry: { label: "still ours" } });
    await again.close();
    expect(readFileSync(path, "utf8")).toContain(deep);
  });

  it("holds nothing of a session that was purged, though it is not written any more", async () => {
    const root = newFolder();
    const other = sessionRef({ key: "agent:main:secret-key" });
    const first = await storeWithSession(root);
    await first.save(other, { sessionId: "s2", label: "secret label" }, { ifRevision: null });
    await first.close();
    const own = `${root}/agents/main/throughline`;
    for (const name of ["sessions.json.killed.tmp", "sessions-view.json.killed.tmp"])
      writeFileSync(`${own}/${name}`, readFileSync(`${root}/agents/main/sessions/sessions.json`));
    const store = createJsonlStore({ root, sessionsJson: false });
    await store.remove(other, { purge: true });
    await store.close();
    const holders = filesBelow(root).filter((path) => readFileSync(`${root}/${path}`).includes("secret"));
    expect(holders).toEqual([]);
    expect(Object.keys(viewOf(root))).toEqual([key]);
  });

  it("loses nothing under a key like __proto__", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const odd = { namespace: "", agentId: "main", key: "__proto__" };
    await store.save(odd, { sessionId: "s2", label: "odd" }, { ifRevision: null });
    await store.close();
    expect(Object.entries(viewOf(root)).map(([name, { label }]) => [name, label])).toContainEqual(["__proto__", "odd"]);
    const again = createJsonlStore({ root });
    expect((await again.load(odd))?.entry.label).toBe("odd");
    await again.close();
  });

  it("is not written when that was asked, nor under a codec", async () => {
    const root = newFolder();
    await (await storeWithSession(root, { sessionsJson: false })).close();
    expect(existsSync(`${root}/agents/main/sessions/sessions.json`)).toBe(false);
    const coded = newFolder();
    await (
      await storeWithSession(coded, { codec: { name: "same", encode: (bytes) => bytes, decode: (bytes) => bytes } })
    ).close();
    expect(filesBelow(`${coded}/agents/main/sessions`)).toEqual(["s1.jsonl"]);
  });
});

describe("a transcript nobody has an entry for", () => {
  it("is listed under a key made from its id, and is not touched", async () => {
    const root = newFolder();
    await (await storeWithSession(root)).close();
    const lines = [
      {
        type: "message",
        id: "aaaa0001",
        parentId: null,
        timestamp: "2026-01-02T03:04:06.006Z",
        message: { role: "user", content: "no header" },
      },
    ];
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    writeFileSync(transcriptOf(root, "stray"), text);
    const store = createJsonlStore({ root });
    const ref = sessionRef({ key: "agent:main:import:direct:stray" });
    expect((await store.list({ sort: "key" })).sessions.map((session) => session.ref.key)).toEqual([ref.key, key]);
    expect(await textsOf(store, ref)).toEqual(["no header"]);
    expect(readFileSync(transcriptOf(root, "stray"), "utf8")).toBe(text);
    await store.append(ref, [userDraft("ours")]);
    expect(readFileSync(transcriptOf(root, "stray"), "utf8").startsWith(text)).toBe(true);
    await store.close();
  });

  it.each([
    ["differs by case from another", ["abc", "ABC"], ["ABC", "abc-2"]],
    ["is no id, and in no header either", ["abc", "\u{1f600}", "-x..y"], ["abc", "transcript-2", "x-y-2"]],
  ])("is listed too when its name %s", async (_how, names, ids) => {
    const root = newFolder();
    mkdirSync(`${root}/agents/main/sessions`, { recursive: true });
    const line = { type: "message", id: "a", parentId: null, timestamp: "2026-01-02T03:04:05.006Z" };
    for (const name of names)
      writeFileSync(transcriptOf(root, name), `${JSON.stringify({ ...line, ...userDraft(name) })}\n`);
    for (let time = 0; time < 2; time++) {
      const store = createJsonlStore({ root });
      const { sessions } = await store.list({ sort: "key" });
      expect(sessions.map(({ sessionId }) => sessionId).toSorted()).toEqual(ids);
      const texts = await Promise.all(sessions.map(({ ref }) => textsOf(store, ref)));
      expect(texts.flat().toSorted()).toEqual(names.toSorted());
      await store.close();
    }
  });

  it("comes back under its own key when the log is gone", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(mainRef, [userDraft("hi")], { entry: { label: "travelled" } });
    await store.close();
    renameSync(`${root}/agents/main/throughline`, `${root}/lost`);
    const again = createJsonlStore({ root, sessionsJson: false });
    expect(await again.load(mainRef)).toMatchObject({
      sessionId: "s1",
      entry: { label: "travelled" },
      messageCount: 1,
    });
    await again.close();
  });
});
