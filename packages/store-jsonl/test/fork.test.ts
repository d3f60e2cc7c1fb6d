import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Finding, sessionRef, type SessionRef, type SessionStore } from "@throughline/core";
import { throughlineDraft } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { faultyFiles } from "./faulty-files.ts";
import { mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { contentsBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

function refOf(name: string): SessionRef {
  return sessionRef({ key: `agent:main:${name}` });
}

async function fork(store: SessionStore, from: SessionRef, name: string, atSeq?: number): Promise<SessionRef> {
  await store.fork?.fork(from, refOf(name), { sessionId: name, ...(atSeq === undefined ? {} : { atSeq }) });
  return refOf(name);
}

async function saying(root: string, texts: readonly string[]): Promise<SessionStore> {
  const store = await storeWithSession(root, { sessionsJson: false });
  await store.append(
    mainRef,
    texts.map((text) => ({ id: `id-${text}`, ...userDraft(text) })),
  );
  return store;
}

async function findingsOf(store: SessionStore): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for await (const finding of store.maintenance?.verify({ full: true }) ?? []) findings.push(finding);
  return findings;
}

describe("a fork", () => {
  it("is a transcript of its own that names its parent, and leaves behind what belonged to the origin", async () => {
    const root = newFolder();
    const store = await saying(root, ["one", "two"]);
    await store.append(mainRef, [userDraft("three")], {
      entry: { label: "origin" },
      idempotencyKey: "key",
      turn: { action: "open", turnId: "t", owner: "o", leaseUntilMs: Date.now() + 60_000, fence: 1 },
      windowFromSeq: 2,
    });
    const forked = await fork(store, mainRef, "f1");
    const state = await store.load(forked);
    expect(state?.head).toMatchObject({ lastSeq: 3, windowSeq: 2, turn: null, fence: 0 });
    expect(state?.entry["label"]).toBeUndefined();
    // A key of the origin is a new one here.
    expect((await store.append(forked, [userDraft("four")], { idempotencyKey: "key" })).replayed).toBe(false);
    const [header = ""] = readFileSync(transcriptOf(root, "f1"), "utf8").split("\n");
    expect(JSON.parse(header)).toMatchObject({ id: "f1", parentSession: transcriptOf(root) });
    expect(await findingsOf(store)).toEqual([]);
    expect(readdirSync(join(root, "agents/main/throughline/torn"))).toEqual([]);
    await store.close();
    expect(await textsOf(createJsonlStore({ root }), forked)).toEqual(["one", "two", "three", "four"]);
  });

  it("of everything stands where its origin stands, whatever moved that without a record", async () => {
    const store = await saying(newFolder(), ["one", "two", "three"]);
    await store.append(mainRef, [userDraft("four")], { windowFromSeq: 4 });
    await store.append(mainRef, [], { rewindTo: "id-one", windowFromSeq: 1 });
    const at = async (ref: SessionRef): Promise<unknown> => {
      const { headId, windowSeq } = (await store.load(ref))?.head ?? {};
      return [headId, windowSeq];
    };
    expect(await at(await fork(store, mainRef, "f1"))).toEqual(["id-one", 1]);
    await store.append(mainRef, [throughlineDraft("note", { kind: "test" })]);
    const whole = await fork(store, mainRef, "f2");
    expect(await at(whole)).toEqual(["id-one", 1]);
    expect((await store.append(whole, [userDraft("on")])).records[0]?.parentId).toBe("id-one");
    expect(await at(await fork(store, mainRef, "f3", 3))).toEqual(["id-three", null]);
    await store.close();
  });

  it("refuses to copy what is damaged, and takes everything before it", async () => {
    const root = newFolder();
    const store = await saying(root, ["one", "two", "three"]);
    await store.close();
    const path = transcriptOf(root);
    writeFileSync(path, readFileSync(path, "utf8").replace('"content":"two"', '"content":"tWo"'));
    const again = createJsonlStore({ root });
    await expect(fork(again, mainRef, "f1")).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      outcome: "not-applied",
      details: { seq: 2, recordId: "id-two" },
    });
    expect(await again.load(refOf("f1"))).toBeNull();
    expect(readdirSync(join(root, "agents/main/throughline/torn"))).toEqual([]);
    expect(await textsOf(again, await fork(again, mainRef, "f1", 1))).toEqual(["one"]);
    await again.close();
  });

  it("of another program's transcript keeps its lines, under a header of its own", async () => {
    const root = newFolder();
    await (await saying(root, ["one"])).close();
    const lines = [
      '{"type":"session","version":3,"id":"old","timestamp":"2026-01-02T03:04:05.006Z","cwd":"/x"}',
      '{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:05.006Z","message":{"role":"user","content":"a", "n":1.0}}',
      '{"role":"user","content":"flat"}',
      "",
      '{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:04:05.006Z","message":{"role":"user","content":"b"}}',
    ];
    writeFileSync(transcriptOf(root, "foreign"), `${lines.join("\n")}\n`);
    const store = createJsonlStore({ root, sessionsJson: false });
    const { sessions } = await store.list();
    const origin = sessions.find(({ sessionId }) => sessionId === "foreign");
    if (origin === undefined) throw new Error("the transcript was not taken in");
    const forked = await fork(store, origin.ref, "f1");
    const read = async (ref: SessionRef): Promise<readonly unknown[]> => {
      const found: unknown[] = [];
      for await (const { records } of store.read(ref, { payload: "source" }))
        for (const { crc: _crc, ...record } of records) found.push(record);
      return found;
    };
    expect(await read(forked)).toEqual(await read(origin.ref));
    expect((await read(forked)).length).toBe(5);
    await store.append(forked, [userDraft("on")]);
    await store.close();
    const [header = ""] = readFileSync(transcriptOf(root, "f1"), "utf8").split("\n");
    expect(JSON.parse(header)).toMatchObject({ id: "f1", parentSession: transcriptOf(root, "foreign") });
  });

  it("whose making was cut off is either there with everything, or not there", async () => {
    const root = newFolder();
    const store = await saying(root, ["one", "two"]);
    const log = join(root, "agents/main/throughline/entries.log");
    copyFileSync(log, `${log}.before`);
    await fork(store, await fork(store, mainRef, "f1"), "f2", 1);
    await store.close();
    // As after a kill between the name of the file and the line of the log.
    renameSync(`${log}.before`, log);
    const again = createJsonlStore({ root });
    expect((await again.list()).sessions.map(({ ref }) => ref.key).toSorted()).toEqual([
      "agent:main:f1",
      "agent:main:f2",
      "agent:main:main",
    ]);
    expect(await again.load(refOf("f2"))).toMatchObject({
      revision: 1,
      entry: { sessionId: "f2", forkedFrom: { sessionId: "f1", atSeq: 1 } },
    });
    // Also what it has in common with others is known.
    await again.redact(refOf("f2"), ["id-one"], { reason: "test" });
    for (const bytes of contentsBelow(root)) expect(Buffer.from(bytes).toString("latin1")).not.toContain('"one"');
    await again.close();
  });

  it("leaves nothing behind when its line cannot be written", async () => {
    const root = newFolder();
    await (await saying(root, ["one"])).close();
    const faults = faultyFiles();
    const store = createJsonlStore({ root, files: faults.files, sessionsJson: false });
    await store.load(mainRef);
    faults.failNext("flush", "ENOSPC");
    await expect(fork(store, mainRef, "f1")).rejects.toMatchObject({ code: "STORE_FULL", outcome: "not-applied" });
    expect(existsSync(transcriptOf(root, "f1"))).toBe(false);
    expect(readdirSync(join(root, "agents/main/throughline/torn"))).toEqual([]);
    expect(await textsOf(store, await fork(store, mainRef, "f1"))).toEqual(["one"]);
    await store.close();
  });

  it("of a purged session's fork is redacted with its sisters", async () => {
    const root = newFolder();
    const store = await saying(root, ["one", "secret", "three"]);
    const first = await fork(store, mainRef, "f1", 2);
    const deep = await fork(store, first, "f2");
    const short = await fork(store, mainRef, "f3", 1);
    await store.remove(first, { purge: true });
    await store.remove(mainRef, { purge: true });
    const other = await fork(store, deep, "f4");
    await store.close();
    const again = createJsonlStore({ root });
    await again.redact(other, ["id-secret"], { reason: "test" });
    for (const bytes of contentsBelow(root)) expect(Buffer.from(bytes).toString("latin1")).not.toContain('"secret"');
    expect((await again.load(deep))?.messageCount).toBe(1);
    expect(await textsOf(again, short)).toEqual(["one"]);
    await again.close();
  });

  it("is opened by pi, which takes it for a session of its own", async (context) => {
    const path = "../node_modules/@mariozechner/pi-coding-agent/dist/core/session-manager.js";
    const pi = (await import(pathToFileURL(join(import.meta.dirname, path)).href).catch(() => null)) as {
      readonly SessionManager: { open(path: string): { getSessionId(): string; getBranch(): readonly unknown[] } };
    } | null;
    if (pi === null) return context.skip();
    const root = newFolder();
    const store = await saying(root, ["one", "two", "three"]);
    await fork(store, mainRef, "f1", 2);
    await store.close();
    const session = pi.SessionManager.open(transcriptOf(root, "f1"));
    expect([session.getSessionId(), session.getBranch().length]).toEqual(["f1", 2]);
  });
});
