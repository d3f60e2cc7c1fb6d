import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { AppendResult, SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

describe("the keys of appends without records", () => {
  const log = (root: string): string => `${root}/agents/main/throughline/entries.log`;
  const index = (root: string): string => `${root}/agents/main/throughline/index.db`;
  const append = (store: SessionStore, key: string, nth = 0): Promise<AppendResult> =>
    store.append(mainRef, [], { entry: { nth }, idempotencyKey: key, durability: "process" });

  it("are lines of one length, and known to every handle after them", { tags: ["slow"] }, async () => {
    const root = newFolder();
    const count = 600;
    let first: AppendResult;
    {
      await using store = await storeWithSession(root, { sessionsJson: false });
      first = await append(store, "k0000");
      for (let nth = 1; nth < count; nth++) await append(store, `k${String(nth).padStart(4, "0")}`, nth);
    }
    const lines = readFileSync(log(root), "utf8").trimEnd().split("\n");
    expect(lines.length).toBeGreaterThan(count);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(700);
    for (const without of [[], [index(root)]]) {
      for (const path of without) rmSync(path);
      await using store = createJsonlStore({ root, sessionsJson: false });
      expect(await append(store, "k0000")).toEqual({ ...first, replayed: true });
      expect((await append(store, `k0${count - 1}`, count - 1)).replayed).toBe(true);
      await expect(store.append(mainRef, [userDraft("x")], { idempotencyKey: "k0000" })).rejects.toMatchObject({
        code: "IDEMPOTENCY_MISMATCH",
      });
    }
  });

  it("are in a log that is written anew, and gone with their session", async () => {
    const root = newFolder();
    await using store = await storeWithSession(root, { sessionsJson: false });
    await append(store, "kept");
    await store.save({ ...mainRef, key: "agent:main:other" }, { sessionId: "other" }, { ifRevision: null });
    await store.append({ ...mainRef, key: "agent:main:other" }, [], { entry: {}, idempotencyKey: "secret key" });
    // A purge writes the log anew.
    await store.remove({ ...mainRef, key: "agent:main:other" }, { purge: true });
    await using other = createJsonlStore({ root, sessionsJson: false });
    expect((await append(other, "kept")).replayed).toBe(true);
    for (const path of [log(root), index(root), `${index(root)}-wal`])
      expect(readFileSync(path).includes("secret key")).toBe(false);
  });

  it("are in the index of a log that is gone", async () => {
    const root = newFolder();
    {
      await using store = await storeWithSession(root, { sessionsJson: false });
      await store.append(mainRef, [userDraft("one")]);
      for (const key of ["a", "b"]) await append(store, key);
    }
    rmSync(log(root));
    for (const without of [[], [index(root)]]) {
      await using store = createJsonlStore({ root, sessionsJson: false });
      for (const key of ["a", "b"]) expect((await append(store, key)).replayed).toBe(true);
      for (const path of without) rmSync(path);
    }
  });

  it("are read from a log of older versions, which repeat all of them in each line", async () => {
    const root = newFolder();
    const keys: unknown[] = [];
    {
      await using store = await storeWithSession(root, { sessionsJson: false });
      for (const key of ["a", "b", "c"]) await append(store, key);
    }
    const older = readFileSync(log(root), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => {
        const { crc: _crc, keyed = [], ...fields } = JSON.parse(line) as { crc: number; keyed?: unknown[][] };
        keys.push(...keyed.map((one) => one.slice(0, 3)));
        return JSON.stringify(keys.length === 0 ? fields : { ...fields, keyed: keys });
      });
    writeFileSync(log(root), "");
    for (const line of older) appendFileSync(log(root), `${line}\n`);
    rmSync(index(root));
    await using store = createJsonlStore({ root, sessionsJson: false });
    for (const key of ["a", "b", "c"]) expect((await append(store, key)).replayed).toBe(true);
    expect((await append(store, "d")).replayed).toBe(false);
  });

  it("are not missing in an index that an older version made", async () => {
    const root = newFolder();
    {
      await using store = await storeWithSession(root, { sessionsJson: false });
      await append(store, "a");
    }
    const database = new DatabaseSync(index(root));
    database.exec("DROP TABLE keyed; PRAGMA user_version = 1");
    database.close();
    {
      await using store = createJsonlStore({ root, sessionsJson: false });
      expect((await append(store, "a")).replayed).toBe(true);
      expect((await append(store, "b")).replayed).toBe(false);
    }
    const made = new DatabaseSync(index(root));
    expect(made.prepare("SELECT key FROM keyed ORDER BY place").all()).toEqual([{ key: "a" }, { key: "b" }]);
    made.close();
  });
});
