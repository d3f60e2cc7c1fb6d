import { closeSync, openSync, readFileSync, rmSync, truncateSync, writeSync } from "node:fs";
import type { SessionStore } from "@throughline/core";
import { createJsonlStore, type JsonlStoreOptions } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { kindsOf, mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const turn = { action: "open", turnId: "t", owner: "o", leaseUntilMs: 1, fence: 1 } as const;

/** A closed store with one acknowledged append of five records: three lines and `moreBytes` of the next are left. */
async function cutStore(
  moreBytes: number,
  options: Partial<JsonlStoreOptions> = {},
  before: (store: SessionStore) => Promise<unknown> = () => Promise.resolve(),
): Promise<string> {
  const root = newFolder();
  const store = await storeWithSession(root, { sessionsJson: false, ...options });
  await store.append(mainRef, ["r1", "r2", "r3", "r4", "r5"].map(userDraft));
  await before(store);
  await store.close();
  const path = transcriptOf(root);
  const kept = readFileSync(path, "utf8").split("\n").slice(0, 4).join("\n");
  truncateSync(path, kept.length + 1 + moreBytes);
  return root;
}

async function idOf(store: SessionStore, seq: number): Promise<string> {
  for await (const { records } of store.read(mainRef)) {
    const found = records.find((record) => record.seq === seq);
    if (found !== undefined) return found.id;
  }
  throw new Error(`there is no record ${seq}`);
}

describe("what is left of an acknowledged append whose end is cut off", () => {
  it.each([0, 30])("outlives a redaction, with %i bytes of the next line", async (more) => {
    const root = await cutStore(more);
    await using store = createJsonlStore({ root, sessionsJson: false });
    await store.redact(mainRef, [await idOf(store, 2)], { reason: "test" });
    const left = ["r1", "test", "r3", more === 0 ? "lost" : "malformed", "lost"];
    expect(await kindsOf(store)).toEqual(left);
    // The file is another now, of which the index knows nothing.
    await using again = createJsonlStore({ root, sessionsJson: false });
    expect(await kindsOf(again)).toEqual(left);
    expect((await again.append(mainRef, [userDraft("next")])).records[0]?.seq).toBe(6);
  });

  it.each([0, 30])("is in a backup, with %i bytes of the next line", async (more) => {
    const root = await cutStore(more);
    const backup = `${newFolder()}/backup`;
    const path = transcriptOf(root);
    const before = readFileSync(path);
    await using store = createJsonlStore({ root, sessionsJson: false });
    const { sizeBytes } = (await store.maintenance?.backup?.(backup)) ?? { sizeBytes: 0 };
    expect(readFileSync(path)).toEqual(before);
    expect(sizeBytes).toBeGreaterThan(before.length);
    await using restored = createJsonlStore({ root: backup, sessionsJson: false });
    expect(await kindsOf(restored)).toEqual(["r1", "r2", "r3", more === 0 ? "lost" : "malformed", "lost"]);
    expect((await restored.append(mainRef, [userDraft("next")])).records[0]?.seq).toBe(6);
  });

  it("keeps its seqs and its fence where an append without records comes first", async () => {
    const options = { index: false, sessionsJson: false };
    const root = await cutStore(0, options, (store) => store.append(mainRef, [], { turn }));
    await using store = createJsonlStore({ root, ...options });
    expect((await store.load(mainRef))?.head).toMatchObject({ fence: 1, turn: { turnId: "t" } });
    await store.append(mainRef, [], { turn: { ...turn, turnId: "t2", fence: 2 } });
    await using again = createJsonlStore({ root, ...options });
    const [next] = (await again.append(mainRef, [userDraft("next")])).records;
    expect(next?.seq).toBe(6);
    expect(await kindsOf(again)).toEqual(["r1", "r2", "r3", "lost", "lost", "next"]);
    expect(next?.parentId).toBe(await idOf(again, 3));
  });

  it("takes no lost record for its head", async () => {
    const options = { index: false, sessionsJson: false };
    const root = await cutStore(0, options, (store) => store.append(mainRef, [], { turn }));
    await using store = createJsonlStore({ root, ...options });
    const [next] = (await store.append(mainRef, [userDraft("next")])).records;
    expect([next?.seq, next?.parentId]).toEqual([6, await idOf(store, 3)]);
  });
});

describe("an acknowledged transcript whose line ends were made carriage returns", () => {
  it.each([true, false])("takes no append, with the index: %s", async (hasIndex) => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(mainRef, ["r1", "r2", "r3"].map(userDraft));
    await store.close();
    const path = transcriptOf(root);
    const text = readFileSync(path, "utf8").replaceAll("\n", "\r");
    const handle = openSync(path, "r+");
    writeSync(handle, text, 0);
    closeSync(handle);
    if (!hasIndex) rmSync(`${root}/agents/main/throughline/index.db`);
    await using again = createJsonlStore({ root, sessionsJson: false });
    await expect(again.append(mainRef, [userDraft("next")])).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    expect(readFileSync(path, "utf8")).toBe(text);
  });
});
