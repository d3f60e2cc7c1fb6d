import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

interface Begun {
  readonly path: string;
  readonly store: SessionStore;
}

/** A store that is open and has acknowledged one message. */
async function begun(): Promise<Begun> {
  const path = join(testFolder(), "store.db");
  const store = createSqliteStore({ path, searchFill: "on-demand", lockTimeoutMs: 100 });
  await createSession(store, "a");
  await store.append(refOf("a"), [say("one")]);
  return { path, store };
}

const moved = { code: "STORE_IO", outcome: "not-applied", message: expect.stringContaining("moved") as string };

describe("a file that loses its name while it is open", () => {
  it.each([
    [
      "deleted, with its log",
      (path: string) => {
        for (const side of ["", "-wal", "-shm"]) rmSync(`${path}${side}`);
      },
    ],
    ["deleted", (path: string) => rmSync(path)],
    ["moved away", (path: string) => renameSync(path, `${path}.old`)],
    [
      "replaced",
      (path: string) => {
        writeFileSync(`${path}.new`, readFileSync(path));
        renameSync(`${path}.new`, path);
      },
    ],
  ])("is %s: nothing more is acknowledged that nobody would find", async (_what, lose) => {
    const { path, store } = await begun();
    lose(path);
    await expect(store.append(refOf("a"), [say("lost")])).rejects.toMatchObject(moved);
    await expect(store.save(refOf("b"), { sessionId: "b" }, { ifRevision: null })).rejects.toMatchObject(moved);
    await store.close();
  });

  it("goes on when it is moved back, with all it has acknowledged", async () => {
    const { path, store } = await begun();
    renameSync(path, `${path}.old`);
    await expect(store.append(refOf("a"), [say("lost")])).rejects.toMatchObject(moved);
    renameSync(`${path}.old`, path);
    await store.append(refOf("a"), [say("two")]);
    await store.close();
    await using again = createSqliteStore({ path });
    expect(await textsOf(again, refOf("a"))).toEqual(["one", "two"]);
  });

  it("leaves its name to nobody else before the process that has it open lets go of it", async () => {
    const { path, store } = await begun();
    renameSync(path, `${path}.old`);
    await using other = createSqliteStore({ path, lockTimeoutMs: 100 });
    await expect(other.list()).rejects.toMatchObject({ code: "STORE_LOCKED" });
    expect(existsSync(path)).toBe(false);
    await store.close();
    expect((await other.list()).sessions).toEqual([]);
    renameSync(`${path}.old`, `${path}.kept`);
    await using kept = createSqliteStore({ path: `${path}.kept` });
    expect(await textsOf(kept, refOf("a"))).toEqual(["one"]);
  });

  it("leaves a log that no new store takes the place of", async () => {
    const { path, store } = await begun();
    const log = readFileSync(`${path}-wal`);
    await store.close();
    renameSync(path, `${path}.old`);
    writeFileSync(`${path}-wal`, log);
    await using other = createSqliteStore({ path });
    await expect(other.list()).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      remedy: expect.stringContaining(`${path}-wal`) as string,
    });
    expect([existsSync(path), statSync(`${path}-wal`).size]).toEqual([false, log.length]);
    renameSync(`${path}-wal`, `${path}.old-wal`);
    expect((await other.list()).sessions).toEqual([]);
  });
});
