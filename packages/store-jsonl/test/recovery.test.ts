import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { sessionRef, type Finding, type SessionEvent, type SessionStore } from "@throughline/core";
import { createXorCodec } from "@throughline/store-conformance";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { mainRef, textsOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const other = sessionRef({ key: "agent:main:other" });

/** Two sessions, one of which must not send, and an archived one. */
async function makeStore(root: string, sessionsJson: boolean): Promise<void> {
  const store = createJsonlStore({ root, sessionsJson });
  await store.save(mainRef, { sessionId: "s1", label: "main", sendPolicy: "deny" }, { ifRevision: null });
  await store.append(mainRef, [userDraft("one")], { entry: { totalTokens: 7 } });
  await store.save(other, { sessionId: "s2", sendPolicy: "allow" }, { ifRevision: null });
  await store.append(other, [userDraft("two")]);
  const old = sessionRef({ key: "agent:main:old" });
  await store.save(old, { sessionId: "s3" }, { ifRevision: null });
  await store.append(old, [userDraft("three")]);
  await store.remove(old);
  await store.close();
}

async function entryOf(store: SessionStore, ref = mainRef): Promise<Readonly<Record<string, unknown>> | undefined> {
  return (await store.load(ref))?.entry;
}

function opened(root: string): { readonly store: SessionStore; readonly findings: Finding[] } {
  const findings: Finding[] = [];
  const onEvent = (event: SessionEvent): void => void (event.name === "finding" && findings.push(event.finding));
  return { store: createJsonlStore({ root, onEvent }), findings };
}

describe("a store whose entries log is gone", () => {
  it("takes its sessions from what the index kept", async () => {
    const root = newFolder();
    await makeStore(root, false);
    const own = join(root, "agents/main/throughline");
    rmSync(join(own, "entries.log"));
    const { store, findings } = opened(root);
    expect(await entryOf(store)).toMatchObject({ label: "main", sendPolicy: "deny", totalTokens: 7 });
    expect(await entryOf(store, other)).toMatchObject({ sendPolicy: "allow" });
    expect((await store.list({ state: "archived" })).sessions.map(({ sessionId }) => sessionId)).toEqual(["s3"]);
    expect(findings.map(({ code }) => code)).toEqual(["ENTRIES_RECOVERED"]);
    await store.close();
    expect(existsSync(join(own, "entries.log"))).toBe(true);
    const again = opened(root);
    expect((await again.store.list({ state: "any" })).sessions.length).toBe(3);
    expect(again.findings).toEqual([]);
    await again.store.close();
  });

  it.for([
    ["sessions.json", "sessions.json"],
    ["what it wrote there last", "throughline/sessions-view.json"],
  ] as const)("and its index too takes them from %s", async ([, kept]) => {
    const root = newFolder();
    await makeStore(root, true);
    const agent = join(root, "agents/main");
    if (kept !== "sessions.json") rmSync(join(agent, "sessions/sessions.json"));
    const base = readFileSync(join(agent, "throughline/sessions-view.json"));
    rmSync(join(agent, "throughline"), { recursive: true });
    mkdirSync(join(agent, "throughline"));
    if (kept !== "sessions.json") writeFileSync(join(agent, kept), base);
    const { store } = opened(root);
    expect(await entryOf(store)).toMatchObject({ label: "main", sendPolicy: "deny", totalTokens: 7 });
    expect(await entryOf(store, other)).toMatchObject({ sendPolicy: "allow" });
    expect(await textsOf(store, other)).toEqual(["two"]);
    expect((await store.list({ state: "archived" })).sessions.map(({ sessionId }) => sessionId)).toEqual(["s3"]);
    await store.close();
  });

  it("and every copy of it denies sending until somebody says otherwise, and says so", async () => {
    const root = newFolder();
    await makeStore(root, false);
    rmSync(join(root, "agents/main/throughline"), { recursive: true });
    const { store, findings } = opened(root);
    const state = await store.load(other);
    expect(state?.entry).toMatchObject({ sendPolicy: "deny" });
    expect(await entryOf(store)).toMatchObject({ sendPolicy: "deny", totalTokens: 7 });
    expect(findings.map(({ code, key, severity }) => [code, key, severity])).toEqual(
      ["agent:main:main", "agent:main:other", "agent:main:old"].map((key) => ["ENTRY_UNREADABLE", key, "error"]),
    );
    await store.save(other, { sessionId: "s2", sendPolicy: "allow" }, { ifRevision: state?.revision ?? null });
    await store.close();
    const again = opened(root);
    expect(await entryOf(again.store, other)).toMatchObject({ sendPolicy: "allow" });
    expect(again.findings).toEqual([]);
    await again.store.close();
  });
});

describe("a line of the entries log that cannot be read", () => {
  it("makes the session it was about unreadable, and after a repair deny, unless a later line says what it is", async () => {
    const root = newFolder();
    await makeStore(root, false);
    const own = join(root, "agents/main/throughline");
    for (const name of ["index.db", "index.db-wal", "index.db-shm"]) rmSync(join(own, name), { force: true });
    const log = join(own, "entries.log");
    const lines = readFileSync(log, "utf8").split("\n");
    const last = lines.findLastIndex((line) => line.includes('"sessionId":"s2"'));
    const early = lines.findIndex((line) => line.includes('"sessionId":"s1"'));
    expect(lines.findLastIndex((line) => line.includes('"sessionId":"s1"'))).toBeGreaterThan(early);
    // A bit that fell over where an object begins.
    for (const index of [last, early]) lines[index] = lines[index]?.replace('"entry":{', '"entry":[') ?? "";
    writeFileSync(log, lines.join("\n"));
    const { store, findings } = opened(root);
    await expect(store.load(other)).rejects.toMatchObject({ code: "STORE_CORRUPT", details: { line: last + 1 } });
    expect(await entryOf(store)).toMatchObject({ label: "main", totalTokens: 7 });
    for await (const _finding of store.maintenance?.repair() ?? []);
    expect(await entryOf(store, other)).toMatchObject({ sendPolicy: "deny" });
    expect(await textsOf(store, other)).toEqual(["two"]);
    expect(findings.map(({ code, key }) => [code, key])).toContainEqual(["ENTRY_UNREADABLE", "agent:main:other"]);
    await store.close();
  });

  it("about where a transcript went lets the folder be searched for it", async () => {
    const root = newFolder();
    await makeStore(root, false);
    const old = sessionRef({ key: "agent:main:old" });
    {
      await using store = createJsonlStore({ root });
      await store.save(old, { sessionId: "s4" }, { ifRevision: null });
    }
    // A list notes that nothing of another program is in the folder, so that no later handle searches it.
    utimesSync(join(root, "agents/main/sessions"), 1e9, 1e9);
    {
      await using store = createJsonlStore({ root });
      await store.list({ state: "any" });
    }
    const log = join(root, "agents/main/throughline/entries.log");
    const { mtime } = statSync(log);
    const bytes = readFileSync(log);
    const at = bytes.indexOf(".deleted.", bytes.indexOf('"op":"archive"'));
    bytes[at] = 0x2c;
    writeFileSync(log, bytes);
    utimesSync(log, mtime, mtime);
    await using store = createJsonlStore({ root });
    expect(await textsOf(store, { ...old, archiveId: "s3" })).toEqual(["three"]);
    expect(await textsOf(store)).toEqual(["one"]);
  });

  it("does not take the whole line behind it along when only zeros are left of it", async () => {
    const root = newFolder();
    await makeStore(root, false);
    const own = join(root, "agents/main/throughline");
    rmSync(join(own, "index.db"), { force: true });
    const path = join(own, "entries.log");
    const store = createJsonlStore({ root, sessionsJson: false });
    const state = await store.load(other);
    await store.save(other, { sessionId: "s2", label: "x" }, { ifRevision: state?.revision ?? null });
    const beforeBytes = statSync(path).size;
    await store.save(other, { sessionId: "s2", label: "y" }, { ifRevision: (state?.revision ?? 0) + 1 });
    const lostBytes = statSync(path).size;
    await store.save(sessionRef({ key: "agent:main:new" }), { sessionId: "s4", label: "new" }, { ifRevision: null });
    await store.close();
    rmSync(join(own, "index.db"), { force: true });
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0, beforeBytes, lostBytes));
    const again = opened(root);
    const kept = await entryOf(again.store, sessionRef({ key: "agent:main:new" }));
    expect(kept).toMatchObject({ label: "new" });
    expect(kept).not.toHaveProperty("sendPolicy");
    expect(await entryOf(again.store, other)).toMatchObject({ label: "x" });
    expect(again.findings).toMatchObject([{ code: "ENTRY_UNREADABLE" }]);
    const found: Finding[] = [];
    for await (const finding of again.store.maintenance?.verify({}) ?? []) found.push(finding);
    expect(found).toMatchObject([{ code: "ENTRY_UNREADABLE", line: again.findings[0]?.line }]);
    await again.store.close();
  });

  it("of a newer version stays when the log is written anew, unless it is about what has to go", async () => {
    const root = newFolder();
    await makeStore(root, false);
    const log = join(root, "agents/main/throughline/entries.log");
    const newer = ["s1", "s2", "s9"].map((id) => `{"v":2,"op":"later","sessionId":"${id}","what":"${id} it will say"}`);
    appendFileSync(log, newer.map((line) => `${line}\n`).join(""));
    const { store } = opened(root);
    const state = await store.load(mainRef);
    await store.save(mainRef, { ...state?.entry, sessionId: "s1" }, { ifRevision: state?.revision ?? null });
    await store.remove(other, { purge: true });
    await store.close();
    const kept = readFileSync(log, "utf8").split("\n");
    // What came after it says what the session is.
    expect(newer.map((line) => kept.includes(line))).toEqual([false, false, true]);
  });

  it("is as good as two where a zero stands in the place of the line feed between them", async () => {
    const root = newFolder();
    await makeStore(root, false);
    const own = join(root, "agents/main/throughline");
    const log = join(own, "entries.log");
    const before = opened(root);
    const wanted = [await before.store.load(mainRef), await before.store.load(other)];
    await before.store.close();
    for (const name of ["index.db", "index.db-wal", "index.db-shm"]) rmSync(join(own, name), { force: true });
    const bytes = readFileSync(log);
    for (let at = bytes.indexOf(0x0a); at !== bytes.length - 1; at = bytes.indexOf(0x0a, at)) bytes[at] = 0;
    writeFileSync(log, bytes);
    const { store, findings } = opened(root);
    expect([await store.load(mainRef), await store.load(other)]).toEqual(wanted);
    const found: Finding[] = [];
    for await (const finding of store.maintenance?.verify({}) ?? []) found.push(finding);
    expect([...findings, ...found]).toEqual([]);
    await store.close();
  });

  it("changes nothing in a folder of another program that has none", async () => {
    const root = newFolder();
    const folder = join(root, "agents/main/sessions");
    mkdirSync(folder, { recursive: true });
    const header = '{"type":"session","version":3,"id":"a","timestamp":"2026-01-02T03:04:05.006Z","cwd":"/"}';
    writeFileSync(join(folder, "a.jsonl"), `${header}\n`);
    const { store, findings } = opened(root);
    const [session] = (await store.list()).sessions;
    expect(session?.entry["sendPolicy"]).toBeUndefined();
    expect(findings).toEqual([]);
    await store.close();
  });

  it("opens under a codec although a change was bound to a key that nobody knows any more", async () => {
    const root = newFolder();
    const codec = createXorCodec();
    const [renamed, other] = ["agent:main:renamed", "agent:main:other"].map((key) => sessionRef({ key }));
    const first = createJsonlStore({ root, codec });
    await first.save(mainRef, { sessionId: "s1" }, { ifRevision: null });
    await first.save(other ?? mainRef, { sessionId: "s2" }, { ifRevision: null });
    await first.append(other ?? mainRef, [userDraft("other")]);
    await first.move(mainRef, { kind: "rename", key: "agent:main:renamed" });
    await first.append(renamed ?? mainRef, [userDraft("renamed")], { entry: { label: "bound" } });
    await first.close();
    rmSync(join(root, "agents/main/throughline"), { recursive: true });
    const wrong = createJsonlStore({ root, codec: { ...codec, decode: () => new Uint8Array([0x7b]) } });
    await expect(wrong.list()).rejects.toMatchObject({ code: "CODEC_FAILED" });
    await wrong.close();
    const again = createJsonlStore({ root, codec });
    expect((await again.list({ sort: "key" })).sessions.map(({ sessionId }) => sessionId)).toEqual(["s1", "s2"]);
    expect((await again.load(mainRef))?.entry).toEqual({ sessionId: "s1", sendPolicy: "deny" });
    await again.append(mainRef, [userDraft("more")], { entry: { label: "new" } });
    expect([await textsOf(again, mainRef), await textsOf(again, other)]).toEqual([["renamed", "more"], ["other"]]);
    expect((await again.load(mainRef))?.entry["label"]).toBe("new");
    await again.close();
  });
});
