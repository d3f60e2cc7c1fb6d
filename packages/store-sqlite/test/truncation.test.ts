import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { ThroughlineError } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

const [pageBytes, frameBytes, logHeaderBytes] = [8192, 8192 + 24, 32];

interface Files {
  readonly database: Buffer;
  readonly log: Buffer;
  /** The database after its handle was closed: without a log. */
  readonly closed: Buffer;
  readonly said: readonly string[];
}

/** What stands on the disk while a store with 16 records is open, of which the first eight are written back. */
async function filesOfStore(): Promise<Files> {
  const path = join(testFolder(), "store.db");
  const said: string[] = [];
  const store = createSqliteStore({ path, searchFill: "on-demand" });
  const ref = await createSession(store, "a");
  for (let each = 0; each < 16; each++) {
    if (each === 8) {
      const other = new Database(path);
      other.pragma("wal_checkpoint(TRUNCATE)");
      other.close();
    }
    said.push(`n${each} ${"x".repeat((each % 5) * 2500)}`);
    await store.append(ref, [say(said.at(-1) ?? "")]);
  }
  const [database, log] = [readFileSync(path), readFileSync(`${path}-wal`)];
  await store.close();
  return { database, log, closed: readFileSync(path), said };
}

/** The texts a store made of these files gives, or the code of the error; and whether it takes more. */
async function outcomeOf(database: Buffer, log: Buffer | null): Promise<readonly string[] | string> {
  const path = join(testFolder(), "store.db");
  writeFileSync(path, database, { mode: 0o600 });
  if (log !== null) writeFileSync(`${path}-wal`, log, { mode: 0o600 });
  await using store = createSqliteStore({ path, create: false, searchFill: "on-demand" });
  try {
    const texts = (await textsOf(store, refOf("a"))) as string[];
    await store.append(refOf("a"), [say("after")]);
    for await (const finding of store.maintenance?.verify({ full: true }) ?? []) expect(finding).toBeUndefined();
    expect(await textsOf(store, refOf("a"))).toEqual([...texts, "after"]);
    return texts;
  } catch (error) {
    if (!ThroughlineError.isInstance(error)) throw error;
    // What cannot be read is kept to the byte where there was no log that belongs into it.
    if (log === null || database.length === 0) expect(readFileSync(path).equals(database)).toBe(true);
    if (log !== null && database.length === 0) expect(readFileSync(`${path}-wal`).equals(log)).toBe(true);
    return error.code;
  }
}

describe("a file that was cut", () => {
  it(
    "at any page or odd byte of the log gives what was acknowledged up to there, and takes more",
    { tags: ["slow"], timeout: 60_000 },
    async () => {
      const { database, log, said } = await filesOfStore();
      const frames = Array.from(
        { length: Math.floor(log.length / frameBytes) },
        (_, index) => logHeaderBytes + index * frameBytes,
      );
      const cuts = [0, 1, 24, 31, 33, ...frames.flatMap((at, index) => [at, at + [1, 23, 25, 4096, 8215][index % 5]!])];
      let longest = 8;
      for (const cut of cuts) {
        const texts = await outcomeOf(database, log.subarray(0, cut));
        expect(texts, `cut at ${cut}`).toEqual(said.slice(0, texts.length));
        expect(texts.length, `cut at ${cut}`).toBeGreaterThanOrEqual(cut === 0 ? 8 : longest);
        longest = texts.length;
      }
      expect([await outcomeOf(database, log), longest >= 15]).toEqual([said, true]);
    },
  );

  it("at any page or odd byte of the database is told as damage, and stays as it is", { timeout: 60_000 }, async () => {
    const { database, log, closed, said } = await filesOfStore();
    const pages = closed.length / pageBytes;
    const cuts = Array.from({ length: pages }, (_, index) => index * pageBytes + [0, 1, 100, 4096][index % 4]!);
    for (const cut of [1, 99, 100, ...cuts.slice(1)])
      expect(await outcomeOf(closed.subarray(0, cut), null), `cut at ${cut}`).toBe("STORE_CORRUPT");
    expect(await outcomeOf(closed.subarray(0, 0), null)).toBe("STORE_NOT_FOUND");
    expect(await outcomeOf(closed, null)).toEqual(said);
    // SQLite would delete the log of an empty file.
    expect(await outcomeOf(database.subarray(0, 0), log)).toBe("STORE_CORRUPT");
  });

  it("to nothing, beside its log, comes back from a backup, and both are kept", async () => {
    const { log, closed } = await filesOfStore();
    const path = join(testFolder(), "store.db");
    writeFileSync(path, "", { mode: 0o600 });
    writeFileSync(`${path}-wal`, log, { mode: 0o600 });
    writeFileSync(`${path}.one.backup`, closed, { mode: 0o600 });
    const kept: string[] = [];
    await using store = createSqliteStore({
      path,
      onEvent: (event) => void (event.name === "finding" && kept.push(event.finding.path ?? "")),
    });
    expect(await textsOf(store, refOf("a"))).toHaveLength(16);
    expect(readFileSync(`${kept[0]}-wal`).equals(log)).toBe(true);
    expect(existsSync(kept[0] ?? "")).toBe(true);
  });
});
