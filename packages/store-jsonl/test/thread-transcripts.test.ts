import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { openSession, sessionRef, type SessionRef, type SessionState } from "@throughline/core";
import { openThread, resetSession, systemClock, systemRandom } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { kindsOf, textsOf, userDraft } from "./session-fixture.ts";
import { filesBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const parent = sessionRef({ key: "agent:main:telegram:group:42" });
const ports = { clock: systemClock, random: systemRandom };

const namesIn = (root: string): readonly string[] =>
  readdirSync(`${root}/agents/main/sessions`).filter((name) => name !== "sessions.json");

const fileOf = (root: string, { sessionId }: SessionState, topic: string): string =>
  `${root}/agents/main/sessions/${sessionId}-topic-${topic}.jsonl`;

/** A conversation with a thread, of which both have a message. */
async function withThread(
  root: string,
  id: string | number = "a/b c",
): Promise<{ readonly ref: SessionRef; readonly state: SessionState }> {
  await using store = createJsonlStore({ root });
  await openSession(store, parent, { random: systemRandom });
  await store.append(parent, [userDraft("in the group")]);
  const { state } = await openThread(store, parent, { ...ports, id });
  await store.append(state.ref, [userDraft("in the thread")]);
  return { ref: state.ref, state };
}

describe("a thread's transcript", () => {
  it("has the topic in its name, percent-encoded, beside its parent's and apart from it [C06]", async () => {
    const root = newFolder();
    const { ref, state } = await withThread(root);
    expect(existsSync(fileOf(root, state, "a%2Fb%20c"))).toBe(true);
    expect(namesIn(root)).toHaveLength(2);
    await using store = createJsonlStore({ root });
    expect((await openThread(store, parent, { ...ports, id: "a/b c" })).isNew).toBe(false);
    expect([await textsOf(store, ref), await textsOf(store, parent)]).toEqual([["in the thread"], ["in the group"]]);
    const topic = await openThread(store, parent, { ...ports, id: 7, kind: "topic", fork: true });
    expect(await textsOf(store, topic.state.ref)).toEqual(["in the group"]);
    expect(existsSync(fileOf(root, topic.state, "7"))).toBe(true);
  });

  it("is found by a reset, a deletion, a restore, a rename and a fork, under its name", async () => {
    const root = newFolder();
    const { ref, state } = await withThread(root, 7);
    const name = `${state.sessionId}-topic-7.jsonl`;
    const store = createJsonlStore({ root });
    await store.fork?.fork(ref, sessionRef({ key: `${parent.key}:thread:fork` }), { sessionId: "forked" });
    expect(namesIn(root)).toContain("forked-topic-fork.jsonl");
    const reset = await resetSession(store, ref, { random: systemRandom });
    const archived = { ...ref, archiveId: state.sessionId };
    expect(namesIn(root)).toContain(`${reset.sessionId}-topic-7.jsonl`);
    expect(namesIn(root).filter((one) => one.startsWith(`${name}.reset.`))).toHaveLength(1);
    expect(await textsOf(store, archived)).toEqual(["in the thread"]);
    await store.remove(ref);
    await store.move(archived, { kind: "restore" });
    expect(namesIn(root)).toContain(name);
    const plain = sessionRef({ key: "agent:main:plain" });
    await store.move(ref, { kind: "rename", key: plain.key });
    await store.append(plain, [userDraft("renamed")]);
    await store.close();
    await using again = createJsonlStore({ root });
    expect(await textsOf(again, plain)).toEqual(["in the thread", "renamed"]);
    await again.remove(plain, { purge: true });
    expect(filesBelow(root).filter((path) => readFileSync(`${root}/${path}`).includes("renamed"))).toEqual([]);
  });

  it("is that of its session where only transcripts are left", async () => {
    const root = newFolder();
    const { ref, state } = await withThread(root, 7);
    rmSync(`${root}/agents/main/throughline`, { recursive: true });
    rmSync(`${root}/agents/main/sessions/sessions.json`);
    await using store = createJsonlStore({ root });
    expect(await store.load(ref)).toMatchObject({ sessionId: state.sessionId, messageCount: 1 });
    expect((await store.list({ state: "any" })).sessions).toHaveLength(2);
  });

  it("stays where it is when it has a plain name from before", async () => {
    const root = newFolder();
    const { ref, state } = await withThread(root, 7);
    const own = `${root}/agents/main/throughline`;
    renameSync(fileOf(root, state, "7"), `${root}/agents/main/sessions/${state.sessionId}.jsonl`);
    for (const name of ["entries.log", "index.db", "index.db-wal", "index.db-shm", "sessions-view.json"])
      rmSync(`${own}/${name}`, { force: true });
    await using store = createJsonlStore({ root });
    await store.append(ref, [userDraft("as before")]);
    expect(await textsOf(store, ref)).toEqual(["in the thread", "as before"]);
    expect(namesIn(root)).toContain(`${state.sessionId}.jsonl`);
    expect(await store.load(ref)).toMatchObject({ sessionId: state.sessionId, messageCount: 2 });
  });

  it("has a plain name where the topic makes no file name", async () => {
    const root = newFolder();
    const { ref, state } = await withThread(root, "x".repeat(101));
    expect(namesIn(root)).toContain(`${state.sessionId}.jsonl`);
    await using store = createJsonlStore({ root });
    expect(await textsOf(store, ref)).toEqual(["in the thread"]);
  });

  it.each([
    ["that sessions.json names", { [parent.key]: { sessionId: "abc", updatedAt: 5 } }, `${parent.key}:topic:7`],
    ["that nothing names", {}, "agent:main:import:direct:abc-topic-7"],
  ])("of another program without an entry has the key of its conversation, %s", async (_name, entries, key) => {
    const root = newFolder();
    const folder = `${root}/agents/main/sessions`;
    mkdirSync(folder, { recursive: true });
    const timestamp = "2026-01-02T03:04:05.006Z";
    for (const [name, content] of [
      ["abc-topic-7.jsonl", "in the topic"],
      ["abc.jsonl", "in the group"],
    ] as const) {
      const message = { type: "message", id: name, parentId: null, timestamp, message: { role: "user", content } };
      const lines = [{ type: "session", version: 3, id: "abc", timestamp, cwd: "/" }, message];
      writeFileSync(`${folder}/${name}`, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    }
    writeFileSync(`${folder}/sessions.json`, JSON.stringify(entries));
    await using store = createJsonlStore({ root });
    expect(await kindsOf(store, sessionRef({ key }))).toEqual(["session", "in the topic"]);
  });

  it("is named by sessions.json, and its header names a folder", async () => {
    const root = newFolder();
    const { ref, state } = await withThread(root, 7);
    const view = JSON.parse(readFileSync(`${root}/agents/main/sessions/sessions.json`, "utf8")) as object;
    expect(view).toMatchObject({ [ref.key]: { sessionId: state.sessionId, sessionFile: fileOf(root, state, "7") } });
    const [header = ""] = readFileSync(fileOf(root, state, "7"), "utf8").split("\n", 1);
    expect(JSON.parse(header)).toMatchObject({ type: "session", id: state.sessionId, cwd: process.cwd() });
  });
});

describe("the header of a new transcript", () => {
  const headerOf = (root: string): unknown =>
    JSON.parse(readFileSync(`${root}/agents/main/sessions/s1.jsonl`, "utf8").split("\n", 1)[0] ?? "");

  it.each([
    ["the folder of its entry", { cwd: "/of/the/entry" }, "/given", "/of/the/entry"],
    ["the one the store was given", {}, "/given", "/given"],
  ])("names %s", async (_which, entry, workingDirectory, cwd) => {
    const root = newFolder();
    await using store = createJsonlStore({ root, workingDirectory });
    await store.save(parent, { sessionId: "s1", ...entry }, { ifRevision: null });
    expect(headerOf(root)).toMatchObject({ cwd });
  });

  it("names none under a codec, which it is not under", async () => {
    const root = newFolder();
    const codec = { name: "same", encode: (bytes: Uint8Array) => bytes, decode: (bytes: Uint8Array) => bytes };
    await using store = createJsonlStore({ root, codec, workingDirectory: "/given" });
    await store.save(parent, { sessionId: "s1" }, { ifRevision: null });
    expect(headerOf(root)).toMatchObject({ cwd: "" });
  });
});
