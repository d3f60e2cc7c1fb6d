import { appendFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { sessionRef, type AppendResult, type SessionEvent } from "@throughline/core";
import { createJsonlStore, type LockPort } from "@throughline/store-jsonl";
import { kernelLocks } from "../src/lock-file.ts";
import { describe, expect, it } from "vitest";
import { faultyFiles } from "./faulty-files.ts";
import { holdLocks } from "./lock-holder.ts";
import { importedHeader, mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

function errorsOf(results: readonly PromiseSettledResult<AppendResult>[]): readonly (string | null)[] {
  return results.map((one) => (one.status === "rejected" ? String((one.reason as { code: unknown }).code) : null));
}

describe("appends to one session that come at once", () => {
  it("are one write and one flush, in the order they came", async () => {
    const faults = faultyFiles();
    const store = await storeWithSession(newFolder(), { sessionsJson: false, files: faults.files });
    const texts = Array.from({ length: 64 }, (_, index) => `n${index}`);
    await store.append(mainRef, [userDraft("before")]);
    faults.reset();
    const results = await Promise.all(texts.map((text) => store.append(mainRef, [userDraft(text)])));
    expect([faults.counts["write"], faults.counts["flush"]]).toEqual([1, 1]);
    expect(results.map(({ records, head }) => [records[0]?.seq, head.lastSeq])).toEqual(
      texts.map((_, index) => [index + 2, index + 2]),
    );
    expect(await textsOf(store)).toEqual(["before", ...texts]);
    await store.close();
  });

  it("one after the other and without a flush, let timers have their turn", async () => {
    await using store = await storeWithSession(newFolder(), { sessionsJson: false });
    let turns = 0;
    const counting = setInterval(() => turns++, 1);
    const most = 10_000;
    let appends = 0;
    for (; appends < most && turns < 3; appends++)
      await store.append(mainRef, [userDraft("n")], { durability: "process" });
    clearInterval(counting);
    expect(appends).toBeLessThan(most);
  });

  it("begin a session together, behind one header", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const results = await Promise.all(
      ["a", "b"].map((text) => store.append(mainRef, [userDraft(text), userDraft(text)])),
    );
    expect(results.map(({ records }) => records.map(({ seq }) => seq))).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(await textsOf(store)).toEqual(["a", "a", "b", "b"]);
    await store.close();
    const again = createJsonlStore({ root });
    expect(await textsOf(again)).toEqual(["a", "a", "b", "b"]);
    await again.close();
  });

  it("are told each its own head, also behind a line that another program has not ended", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const line = { ...userDraft("theirs"), id: "theirs", parentId: null, timestamp: "2026-01-01T00:00:00.000Z" };
    appendFileSync(transcriptOf(root), JSON.stringify(line));
    const results = await Promise.all(["a", "b", "c"].map((text) => store.append(mainRef, [userDraft(text)])));
    for (const [index, { records, head }] of results.entries())
      expect([head.lastSeq, head.headId]).toEqual([index + 2, records[0]?.id]);
    expect(await textsOf(store)).toEqual(["theirs", "a", "b", "c"]);
    await store.close();
    const again = createJsonlStore({ root });
    expect(await textsOf(again)).toEqual(["theirs", "a", "b", "c"]);
    await again.close();
  });

  it("are decided one by one: the refused leave the others alone", async () => {
    const store = await storeWithSession(newFolder(), { sessionsJson: false });
    const first = await store.append(mainRef, [{ ...userDraft("first"), id: "taken" }]);
    const append = (text: string, options = {}): Promise<AppendResult> =>
      store.append(mainRef, [userDraft(text)], options);
    const results = await Promise.allSettled([
      append("a"),
      store.append(mainRef, [{ ...userDraft("b"), id: "taken" }]),
      // The head has moved by then: `a` is before it.
      append("c", { expect: { head: first.head.headId } }),
      append("d", { turn: { action: "within", fence: 7 } }),
      append("e"),
      store.append(mainRef, [{ ...userDraft("f"), id: "new" }]),
      store.append(mainRef, [{ ...userDraft("g"), id: "new" }]),
    ]);
    expect(errorsOf(results)).toEqual([
      null,
      "RECORD_ID_TAKEN",
      "APPEND_CONFLICT",
      "TURN_FENCED",
      null,
      null,
      "RECORD_ID_TAKEN",
    ]);
    expect(await textsOf(store)).toEqual(["first", "a", "e", "f"]);
    await store.close();
  });

  it("see the entry and the turn as those before them leave it", async () => {
    const store = await storeWithSession(newFolder(), { sessionsJson: false });
    const results = await Promise.all([
      store.append(mainRef, [userDraft("a")], { entry: { label: "one", totalTokens: 1 } }),
      store.append(mainRef, [], { entry: { sendPolicy: "deny" } }),
      store.append(mainRef, [userDraft("b")], { entry: { label: undefined, totalTokens: 2 } }),
      store.append(mainRef, [userDraft("c")], {
        turn: { action: "open", turnId: "t", owner: "o", leaseUntilMs: 9e15, fence: 1 },
      }),
      store.append(mainRef, [userDraft("d")], { turn: { action: "close", fence: 1 } }),
    ]);
    expect(results.map(({ revision }) => revision)).toEqual([1, 2, 3, 3, 3].map((each) => each + 1));
    const state = await store.load(mainRef);
    expect(state?.entry).toEqual({ sessionId: "s1", totalTokens: 2, sendPolicy: "deny" });
    expect(state?.head).toMatchObject({ fence: 1, turn: null, lastSeq: 4 });
    await store.close();
  });

  it("with one key are one append and answers to it", async () => {
    const store = await storeWithSession(newFolder(), { sessionsJson: false });
    const again = (text: string): Promise<AppendResult> =>
      store.append(mainRef, [userDraft(text)], { idempotencyKey: "turn-1" });
    const results = await Promise.allSettled([again("a"), again("a"), again("b")]);
    expect(errorsOf(results)).toEqual([null, null, "IDEMPOTENCY_MISMATCH"]);
    const replayed = results.map((one) => (one.status === "fulfilled" ? one.value.replayed : null));
    expect(replayed).toEqual([false, true, null]);
    expect(await textsOf(store)).toEqual(["a"]);
    await store.close();
  });

  it("are written so much at once, and no more", async () => {
    const faults = faultyFiles();
    const store = await storeWithSession(newFolder(), { sessionsJson: false, files: faults.files });
    await store.append(mainRef, [userDraft("before")]);
    faults.reset();
    const long = "x".repeat(600_000);
    await Promise.all([1, 2, 3, 4, 5].map(() => store.append(mainRef, [userDraft(long)])));
    expect(faults.counts["write"]).toBe(3);
    await store.close();
  });

  it("are tried one by one when they do not fit on the disk together", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    const store = await storeWithSession(root, { sessionsJson: false, files: faults.files });
    await store.append(mainRef, [userDraft("before")]);
    faults.limitBytes(3000);
    const texts = ["a", "b".repeat(4000), "c", "d"];
    const results = await Promise.allSettled(texts.map((text) => store.append(mainRef, [userDraft(text)])));
    expect(errorsOf(results)).toEqual([null, "STORE_FULL", null, null]);
    expect(results.flatMap((one) => (one.status === "fulfilled" ? [one.value.head.lastSeq] : []))).toEqual([2, 3, 4]);
    faults.reset();
    expect(await textsOf(store)).toEqual(["before", "a", "c", "d"]);
    await store.close();
    const again = createJsonlStore({ root });
    expect(await textsOf(again)).toEqual(["before", "a", "c", "d"]);
    await again.close();
  });

  it("fail without the import of a header that came before them, whose file is written already", async () => {
    const faults = faultyFiles();
    const store = await storeWithSession(newFolder(), { sessionsJson: false, files: faults.files });
    faults.limitBytes(1000);
    const results = await Promise.allSettled([
      store.append(mainRef, [importedHeader(), userDraft("theirs")]),
      store.append(mainRef, [userDraft("ours".repeat(1000))]),
    ]);
    expect(errorsOf(results)).toEqual([null, "STORE_FULL"]);
    faults.reset();
    expect((await store.load(mainRef))?.head.lastSeq).toBe(2);
    await store.close();
  });

  it("are written in the order they were asked for, also while their session is looked for", async () => {
    const root = newFolder();
    await (await storeWithSession(root, { sessionsJson: false })).close();
    const store = createJsonlStore({ root, sessionsJson: false });
    const texts: string[] = [];
    const appends: Promise<AppendResult>[] = [];
    for (let count = 0; count < 8; count++) {
      texts.push(`n${count}`);
      appends.push(store.append(mainRef, [userDraft(`n${count}`)]));
      for (let tick = 0; tick < count; tick++) await Promise.resolve();
    }
    await Promise.all(appends);
    expect(await textsOf(store)).toEqual(texts);
    await store.close();
  });

  it("are all in doubt when their flush fails, and what comes after is not", async () => {
    const faults = faultyFiles();
    const store = await storeWithSession(newFolder(), { sessionsJson: false, files: faults.files });
    await store.append(mainRef, [userDraft("before")]);
    faults.failNext("flush", "EIO");
    const results = await Promise.allSettled(["a", "b"].map((text) => store.append(mainRef, [userDraft(text)])));
    expect(results.map((one) => one.status === "rejected" && (one.reason as { outcome: string }).outcome)).toEqual([
      "unknown",
      "unknown",
    ]);
    await store.append(mainRef, [userDraft("c")]);
    expect(await textsOf(store)).toEqual(["before", "a", "b", "c"]);
    await store.close();
  });

  it("have the places the file gives them, when another program's line slips in between", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    const events: SessionEvent[] = [];
    const onEvent = (event: SessionEvent): void => void events.push(event);
    const store = await storeWithSession(root, { files: faults.files, sessionsJson: false, onEvent });
    await store.append(mainRef, [userDraft("first")]);
    const theirs = {
      type: "message",
      id: "abcd1234",
      parentId: null,
      timestamp: "2026-01-02T03:04:05.006Z",
      message: { role: "user", content: "theirs" },
    };
    faults.beforeNextWrite(() => writeFileSync(transcriptOf(root), `${JSON.stringify(theirs)}\n`, { flag: "a" }));
    events.length = 0;
    const append = (text: string): Promise<AppendResult> =>
      store.append(mainRef, [userDraft(text)], { idempotencyKey: text });
    const results = await Promise.all(["a", "b", "b"].map(append));
    expect(results.map(({ records }) => records[0]?.seq)).toEqual([3, 4, 4]);
    expect(events.filter(({ name }) => name === "records-appended")).toMatchObject([
      { fromSeq: 3, toSeq: 3 },
      { fromSeq: 4, toSeq: 4 },
    ]);
    expect(await textsOf(store)).toEqual(["first", "theirs", "a", "b"]);
    await store.close();
  });
});

describe("appends that wait for a lock", () => {
  it("are each refused at its own deadline, not one after the other", { tags: ["slow"] }, async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { lockTimeoutMs: 400, sessionsJson: false });
    const refs = Array.from({ length: 4 }, (_, index) => sessionRef({ key: `agent:main:n${index}` }));
    for (const [index, ref] of refs.entries()) await store.save(ref, { sessionId: `n${index}` }, { ifRevision: null });
    await Promise.all([mainRef, ...refs].map((ref) => store.append(ref, [userDraft("before")])));
    const holder = await holdLocks(root);
    try {
      let refused = 0;
      const waiting = [mainRef, ...refs].flatMap((ref) =>
        [1, 2, 3].map((each) => store.append(ref, [userDraft(`${each}`)]).finally(() => refused++)),
      );
      const results = Promise.allSettled(waiting);
      await Promise.race(waiting).catch(() => undefined);
      // One that begins to wait now. With one deadline after the other it would be refused long before the last of them.
      await expect(store.append(mainRef, [userDraft("late")])).rejects.toMatchObject({ code: "STORE_LOCKED" });
      expect(refused).toBe(waiting.length);
      expect(new Set(errorsOf(await results))).toEqual(new Set(["STORE_LOCKED"]));
    } finally {
      holder.kill("SIGKILL");
    }
    await store.append(mainRef, [userDraft("after")]);
    expect(await textsOf(store)).toEqual(["before", "after"]);
    await store.close();
  });

  it("can be given up one by one, at once", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const holder = await holdLocks(root);
    const abort = new AbortController();
    const given = [
      store.append(mainRef, [userDraft("a")], { signal: abort.signal }),
      store.append(mainRef, [userDraft("b")]),
      store.append(mainRef, [userDraft("c")], { signal: abort.signal }),
    ];
    const results = Promise.allSettled(given);
    setTimeout(() => abort.abort(), 20);
    try {
      await expect(given[0]).rejects.toMatchObject({ code: "ABORTED", outcome: "not-applied" });
      await expect(given[2]).rejects.toMatchObject({ code: "ABORTED", outcome: "not-applied" });
    } finally {
      holder.kill("SIGKILL");
    }
    expect(errorsOf(await results)).toEqual(["ABORTED", null, "ABORTED"]);
    expect(await textsOf(store)).toEqual(["b"]);
    await store.close();
  });

  it("goes into the new session when another handle has begun one", async () => {
    const root = newFolder();
    const events: SessionEvent[] = [];
    const store = await storeWithSession(root, { sessionsJson: false, onEvent: (event) => events.push(event) });
    await store.append(mainRef, [userDraft("old")]);
    const other = createJsonlStore({ root, sessionsJson: false });
    // Made with less than `disk`, which takes another lock before the first append at `disk`.
    await other.save(mainRef, { sessionId: "s2" }, { ifRevision: 1, durability: "process" });
    await store.append(mainRef, [{ ...userDraft("new"), id: "x" }], { durability: "disk" });
    expect(await textsOf(store)).toEqual(["new"]);
    // The old one's transcript is not missed: it has another name.
    expect(events.map(({ name }) => name)).not.toContain("finding");
    await Promise.all([other.close(), store.close()]);
  });

  it("of an entry that is given up leaves the records of the next to be written", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const holder = await holdLocks(root);
    const abort = new AbortController();
    const entryOnly = store.append(mainRef, [], { entry: { label: "x" }, signal: abort.signal });
    const withRecord = store.append(mainRef, [userDraft("a")]);
    setTimeout(() => abort.abort(), 20);
    try {
      await expect(entryOnly).rejects.toMatchObject({ code: "ABORTED", outcome: "not-applied" });
    } finally {
      holder.kill("SIGKILL");
    }
    expect((await withRecord).records).toHaveLength(1);
    expect(await textsOf(store)).toEqual(["a"]);
    await store.close();
  });

  it("wait on when one before them is given up", async () => {
    let isHeld = false;
    const locks: LockPort = {
      ...kernelLocks,
      open(files, path) {
        const file = kernelLocks.open(files, path);
        return { ...file, tryLock: () => !isHeld && file.tryLock() };
      },
    };
    const store = await storeWithSession(newFolder(), { sessionsJson: false, locks });
    isHeld = true;
    const abort = new AbortController();
    const first = store.append(mainRef, [userDraft("given up")], { signal: abort.signal });
    const refused = expect(first).rejects.toMatchObject({ code: "ABORTED" });
    await sleep(20);
    abort.abort();
    const second = store.append(mainRef, [userDraft("patient")]);
    await refused;
    isHeld = false;
    await second;
    expect(await textsOf(store)).toEqual(["patient"]);
    await store.close();
  });

  it("are not written when they were given up while their session was looked for", async () => {
    const root = newFolder();
    await (await storeWithSession(root, { sessionsJson: false })).close();
    const store = createJsonlStore({ root, sessionsJson: false });
    const abort = new AbortController();
    const append = store.append(mainRef, [userDraft("given up")], { signal: abort.signal });
    abort.abort();
    await expect(append).rejects.toMatchObject({ code: "ABORTED" });
    expect(await textsOf(store)).toEqual([]);
    await store.close();
  });
});
