import type { AppendOptions, AppendResult, SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const leaseUntilMs = 4_000_000_000_000;

/** What an append said, an append without records after it, and what another handle then makes of the session. */
const cases: readonly (readonly [name: string, withRecord: AppendOptions, without: AppendOptions])[] = [
  [
    "closes the turn that the last record opened",
    { turn: { action: "open", turnId: "t1", owner: "one", leaseUntilMs, fence: 1 } },
    { turn: { action: "close", fence: 1 } },
  ],
  ["goes back behind a rewind", { rewindTo: null }, { rewindTo: "first" }],
  ["states another window", { windowFromSeq: 1 }, { windowFromSeq: 2 }],
];

describe("an append without records", () => {
  it.each(cases)("%s, for every handle", async (_name, withRecord, without) => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(mainRef, [{ ...userDraft("a"), id: "first" }]);
    await store.append(mainRef, [userDraft("b")], withRecord);
    const { head } = await store.append(mainRef, [], { entry: { label: "x" }, ...without });
    const other = createJsonlStore({ root, sessionsJson: false });
    expect((await other.load(mainRef))?.head).toEqual(head);
    expect((await other.append(mainRef, [], { entry: {} })).head).toEqual(head);
    await other.close();
    await store.close();
    const again = createJsonlStore({ root, index: false });
    expect((await again.load(mainRef))?.head).toEqual(head);
    await again.close();
  });

  it("opens a turn that no other handle opens again", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const open = (turnId: string, fence: number): AppendOptions => ({
      entry: {},
      turn: { action: "open", turnId, owner: turnId, leaseUntilMs, fence },
    });
    await store.append(mainRef, [], open("t1", 1));
    await store.append(mainRef, [userDraft("a")], { turn: { action: "close", fence: 1 } });
    await store.append(mainRef, [], open("t2", 2));
    const other = createJsonlStore({ root, sessionsJson: false });
    await expect(other.append(mainRef, [], open("t3", 2))).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await expect(other.append(mainRef, [userDraft("b")])).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await other.close();
    await store.close();
  });

  it("is no part of what the record before it gives when that is made again with its key", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const append = (one: SessionStore): Promise<AppendResult> =>
      one.append(mainRef, [userDraft("a")], { idempotencyKey: "k" });
    const first = await append(store);
    const { head } = await store.append(mainRef, [], { entry: {}, windowFromSeq: 1 });
    await store.close();
    const again = createJsonlStore({ root, sessionsJson: false });
    expect(await append(again)).toEqual({ ...first, replayed: true });
    expect((await again.load(mainRef))?.head).toEqual(head);
    await again.close();
  });

  it("gives the head it gave when it is made again with its key", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const mark = (): Promise<AppendResult> =>
      store.append(mainRef, [], { entry: { label: "x" }, idempotencyKey: "k", windowFromSeq: 1 });
    await store.append(mainRef, [userDraft("a")]);
    const first = await mark();
    await store.append(mainRef, [userDraft("b")]);
    expect(await mark()).toEqual({ ...first, replayed: true });
    await store.close();
  });
});
