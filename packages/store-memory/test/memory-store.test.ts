import { openSession, readWindow } from "@throughline/core";
import { copyRecords, patchEntry, resetSession, systemRandom, updateEntry } from "@throughline/core/internal";

import type { SessionRef, SessionStore } from "@throughline/core";
import { createMemoryData } from "../src/memory-data.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";

const random = systemRandom;

function refOf(name: string): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:${name}` };
}

function say(text: string): { readonly type: string; readonly message: object } {
  return { type: "message", message: { role: "user", content: text } };
}

async function textsOf(store: SessionStore, ref: SessionRef): Promise<unknown[]> {
  const { records } = await readWindow(store, ref);
  return records.map(({ record }) => (record["message"] as { readonly content?: unknown }).content);
}

describe("memory store", () => {
  it("lists the sessions of one moment, whatever becomes of them before the answer is heard", async () => {
    await using store = createMemoryStore();
    for (const name of ["a", "b", "c"]) await store.save(refOf(name), { sessionId: name }, { ifRevision: null });
    const [{ sessions }] = await Promise.all([
      store.list({ sort: "key" }),
      store.remove(refOf("a"), { purge: true }),
      store.move(refOf("b"), { kind: "rename", key: refOf("d").key }),
      store.move(refOf("c"), { kind: "archive" }),
    ]);
    expect(sessions.map(({ ref, archived }) => [ref, archived])).toEqual(
      ["a", "b", "c"].map((name) => [refOf(name), false]),
    );
  });

  it("ends a page of a list where its entries fill the bytes of a page", async () => {
    await using store = createMemoryStore({ limits: { pageBytes: 10_000 } });
    for (const name of ["a", "b", "c", "d"])
      await store.save(refOf(name), { sessionId: name, text: "x".repeat(6000) }, { ifRevision: null });
    const first = await store.list({ sort: "key" });
    const second = await store.list({ sort: "key", cursor: first.nextCursor ?? "" });
    expect([first, second].map(({ sessions }) => sessions.map(({ sessionId }) => sessionId))).toEqual([
      ["a", "b"],
      ["c", "d"],
    ]);
    expect(second.nextCursor).toBeNull();
  });

  it("loads without creating, and opens by loading or creating [C15]", async () => {
    await using store = createMemoryStore();
    expect(await store.load(refOf("a"))).toBeNull();
    expect((await store.list({ state: "any" })).sessions).toEqual([]);
    const [one, two] = await Promise.all([
      openSession(store, refOf("a"), { random }),
      openSession(store, refOf("a"), { random }),
    ]);
    expect([one.isNew, two.isNew].toSorted()).toEqual([false, true]);
    expect(one.state.sessionId).toBe(two.state.sessionId);
    await store.append(refOf("a"), [say("hello")]);
    expect((await store.list()).sessions).toHaveLength(1);
    await store.save(refOf("a"), { sessionId: one.state.sessionId, label: "x" }, { ifRevision: 1 });
    expect((await store.load(refOf("a")))?.entry.label).toBe("x");
  });

  it("keeps two sessions apart, and switching back shows the first unchanged", async () => {
    await using store = createMemoryStore();
    for (const name of ["a", "b"]) await openSession(store, refOf(name), { random });
    await store.append(refOf("a"), [say("a1"), say("a2")]);
    const before = await readWindow(store, refOf("a"));
    await store.append(refOf("b"), [say("b1")]);
    expect(await textsOf(store, refOf("b"))).toEqual(["b1"]);
    expect(await readWindow(store, refOf("a"))).toEqual(before);
  });

  it("keeps entry fields it does not know through every kind of write", async () => {
    await using store = createMemoryStore();
    const foreign = { newFeature: { deep: [1, null] }, queueMode: "steer" };
    await openSession(store, refOf("a"), { random, entry: foreign });
    await store.append(refOf("a"), [say("one")], { entry: { label: "x" } });
    await updateEntry(store, refOf("a"), (entry) => patchEntry(entry, { model: "m" }));
    const { ref } = await store.move(refOf("a"), { kind: "rename", key: refOf("b").key });
    expect((await store.load(ref))?.entry).toMatchObject({ ...foreign, label: "x", model: "m" });
  });

  it("archives on reset and on removal; only a purge deletes [C16]", async () => {
    await using store = createMemoryStore();
    await openSession(store, refOf("a"), { random });
    await store.append(refOf("a"), [say("old")]);
    await resetSession(store, refOf("a"), { random });
    expect(await textsOf(store, refOf("a"))).toEqual([]);
    await store.remove(refOf("a"));
    const { sessions } = await store.list({ state: "archived" });
    expect(sessions).toHaveLength(2);
    const texts = await Promise.all(sessions.map(({ ref }) => textsOf(store, ref)));
    expect(texts.toSorted((one, other) => one.length - other.length)).toEqual([[], ["old"]]);
    for (const { ref } of sessions) await store.remove(ref, { purge: true });
    expect((await store.list({ state: "any" })).sessions).toEqual([]);
  });

  it("loses everything with its handle unless it is given data", async () => {
    const data = createMemoryData();
    const first = createMemoryStore({ data });
    await openSession(first, refOf("a"), { random });
    await first.close();
    await using second = createMemoryStore({ data });
    expect(await second.load(refOf("a"))).not.toBeNull();
    expect(second.capabilities.persistent).toBe(true);
    await using other = createMemoryStore();
    expect(await other.load(refOf("a"))).toBeNull();
    expect(other.capabilities.persistent).toBe(false);
  });

  it("does not let a listener that throws disturb an append", async () => {
    await using store = createMemoryStore({
      onEvent: () => {
        throw new Error("the listener is broken");
      },
    });
    await openSession(store, refOf("a"), { random });
    expect((await store.append(refOf("a"), [say("one")])).records).toHaveLength(1);
  });

  it("gives records of another store back as they were", async () => {
    await using from = createMemoryStore();
    await using to = createMemoryStore();
    for (const store of [from, to]) await openSession(store, refOf("a"), { random });
    const source = '{"type":"message","id":"r1","parentId":null,"timestamp":"2026-01-02T03:04:05.006Z","n":1.0}';
    await from.append(refOf("a"), [{ source }]);
    await copyRecords({ store: from, ref: refOf("a") }, { store: to, ref: refOf("a") });
    for await (const page of to.read(refOf("a"), { payload: "source" })) expect(page.records[0]?.source).toBe(source);
  });
});
