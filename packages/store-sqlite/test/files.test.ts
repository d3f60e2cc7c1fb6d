import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import type { Finding, SessionStore } from "@throughline/core";
import { killProcess } from "@throughline/store-conformance";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { createSession, quickFolder, testFolder } from "./test-folder.ts";

const scope = { namespace: "", agentId: "main" };
const putUntilKilled = fileURLToPath(new URL("put-until-killed.ts", import.meta.url));

/** Six processes take longer than a quick test may. */
const isSlow = { tags: ["slow"], timeout: 60_000 };

async function* content(length: number, fill = 1): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < length; at += 100_000) yield new Uint8Array(Math.min(100_000, length - at)).fill(fill);
}

async function put(store: SessionStore, length: number, fill = 1): Promise<string> {
  return (await store.files!.put(scope, content(length, fill))).id;
}

async function lengthOf(store: SessionStore, id: string): Promise<number> {
  let bytes = 0;
  for await (const piece of store.files!.get(scope, id)) bytes += piece.byteLength;
  return bytes;
}

async function listed(store: SessionStore): Promise<{ id: string; bytes: number | null; references: number }[]> {
  return (await Array.fromAsync(store.files!.list(scope))).flat();
}

function fileDraft(fileId: string): ReturnType<typeof say> {
  return { type: "message", message: { role: "user", content: [{ type: "file", fileId }] } };
}

function rowsOf(path: string, table: string): number {
  const database = new Database(path, { readonly: true });
  try {
    return database.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? -1;
  } finally {
    database.close();
  }
}

describe("files of a SQLite store", () => {
  it(
    "are whole or not there after kill -9, in the middle of a put and between a put and its append",
    isSlow,
    async () => {
      const path = join(testFolder(), "store.db");
      const said: string[] = [];
      for (let round = 0; round < 6; round++) {
        const killed = await killProcess({
          scriptPath: putUntilKilled,
          args: [path],
          execArgv: ["--conditions=@throughline/source"],
          maxDelayMs: 40,
        });
        expect(killed.stderr).toBe("");
        said.push(...killed.acknowledged);
      }
      await using store = createSqliteStore({ path, create: false });
      const files = await listed(store);
      // No record refers to a file that is not there, and each file that is there can be read to its end.
      expect(files.filter(({ bytes }) => bytes === null)).toEqual([]);
      for (const { id } of files) expect(await lengthOf(store, id)).toBe(900_000);
      const references = new Map(files.map((file) => [file.id, file.references]));
      for (const line of said) {
        const [what, id = ""] = line.split(" ");
        expect(references.get(id), line).toBeGreaterThanOrEqual(what === "append" ? 1 : 0);
      }
      // A slow disk leaves time for one put in each round.
      expect(said.length).toBeGreaterThanOrEqual(6);
    },
  );

  it("leave nothing of an upload whose process was killed, a day later", async () => {
    const path = join(testFolder(quickFolder()), "store.db");
    let nowMs = Date.UTC(2026, 0, 1);
    const clock = { nowMs: () => nowMs, sleep: async () => undefined };
    await using store = createSqliteStore({ path, clock });
    await put(store, 10);
    const database = new Database(path);
    database
      .prepare(
        "INSERT INTO store_files (file, namespace, agent_id, upload, stored_at_ms) VALUES (99, '', 'main', 'u', ?)",
      )
      .run(nowMs);
    database.prepare("INSERT INTO store_file_chunks (file, number, content) VALUES (99, 0, x'01')").run();
    database.close();
    nowMs += 23 * 3_600_000;
    await put(store, 11);
    expect(rowsOf(path, "store_files")).toBe(3);
    nowMs += 2 * 3_600_000;
    await put(store, 12);
    await store.files!.delete(scope, await put(store, 13));
    expect(rowsOf(path, "store_files")).toBe(3);
    expect(rowsOf(path, "store_file_chunks")).toBe(3);
  });

  it("are refused by a full disk with a typed error, and nothing of them is seen", async () => {
    const path = join(testFolder(quickFolder()), "store.db");
    const { driver, failNext } = createFaultyDriver();
    await using store = createSqliteStore({ path, driver });
    await put(store, 10);
    for (const sql of [
      "INSERT INTO store_file_chunks (file, number, content) VALUES (?, ?, ?)",
      "UPDATE store_files SET file_id = ?, bytes = ?, stored_at_ms = ? WHERE file = ?",
    ]) {
      failNext(sql, "SQLITE_FULL");
      await expect(put(store, 700_000, 2)).rejects.toMatchObject({ code: "STORE_FULL", outcome: "not-applied" });
      expect(await listed(store)).toHaveLength(1);
      expect(rowsOf(path, "store_file_chunks")).toBe(1);
    }
    expect(await lengthOf(store, await put(store, 700_000, 2))).toBe(700_000);
  });

  it("with a changed or a missing chunk are damage: of a read, and of a check", async () => {
    const path = join(testFolder(quickFolder()), "store.db");
    await using store = createSqliteStore({ path });
    const ids = [await put(store, 700_000, 1), await put(store, 700_000, 2), await put(store, 700_000, 3)] as const;
    const database = new Database(path);
    database.exec("UPDATE store_file_chunks SET content = zeroblob(262144) WHERE file = 1 AND number = 1");
    database.exec("DELETE FROM store_file_chunks WHERE file = 2 AND number = 1");
    database.close();
    for (const id of [ids[0], ids[1]])
      await expect(lengthOf(store, id)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    const found = async (full: boolean): Promise<string[]> =>
      (await Array.fromAsync(store.maintenance!.verify({ full }))).map(({ code, message }) => `${code} ${message}`);
    expect(await found(false)).toEqual([expect.stringContaining(ids[1])]);
    expect(await found(true)).toEqual([expect.stringContaining(ids[0]), expect.stringContaining(ids[1])]);
  });

  it("are found or damage, whichever place of their id has changed", async () => {
    const path = join(testFolder(), "store.db");
    const ids = await (async () => {
      await using store = createSqliteStore({ path });
      return [await put(store, 100, 1), await put(store, 100, 2)];
    })();
    const [id = ""] = ids;
    const whole = readFileSync(path);
    const places: number[] = [];
    for (let at = whole.indexOf(id); at !== -1; at = whole.indexOf(id, at + 1)) places.push(at);
    expect(places.length).toBeGreaterThan(1);
    for (const at of places) {
      const bytes = Uint8Array.from(whole);
      bytes[at + 40] = (bytes[at + 40] ?? 0) ^ 16;
      writeFileSync(path, bytes);
      const answers = [];
      for (const ask of [
        async (store: SessionStore) => (await store.files?.stat(scope, id))?.id,
        async (store: SessionStore) => (await lengthOf(store, id)) === 100 && id,
        async (store: SessionStore) => (await listed(store)).find((file) => file.id === id)?.id,
      ]) {
        await using store = createSqliteStore({ path, recover: false });
        answers.push(await ask(store).catch((error: unknown) => (error as { readonly code: string }).code));
      }
      expect(answers.filter((answer) => answer !== id && answer !== "STORE_CORRUPT")).toEqual([]);
      expect(answers).toContain("STORE_CORRUPT");
    }
  });

  it("are listed with their references, or as damage, whichever place of a reference has changed", async () => {
    const path = join(testFolder(), "store.db");
    const id = await (async () => {
      await using store = createSqliteStore({ path });
      const own = await put(store, 100, 1);
      await store.append(await createSession(store, "a"), [fileDraft(own)]);
      return own;
    })();
    const whole = readFileSync(path);
    const places: number[] = [];
    for (let at = whole.indexOf(id); at !== -1; at = whole.indexOf(id, at + 1)) places.push(at);
    const answers = [];
    for (const at of places) {
      const bytes = Uint8Array.from(whole);
      bytes[at + 40] = (bytes[at + 40] ?? 0) ^ 16;
      writeFileSync(path, bytes);
      await using store = createSqliteStore({ path, recover: false });
      answers.push(await listed(store).catch((error: unknown) => (error as { readonly code: string }).code));
    }
    const right = expect.arrayContaining([expect.objectContaining({ id, bytes: 100, references: 1 })]);
    for (const answer of answers) if (answer !== "STORE_CORRUPT") expect(answer).toEqual(right);
    // The row and the index of the file, and those of the reference.
    expect(answers.filter((answer) => answer === "STORE_CORRUPT")).toHaveLength(4);
  });

  it("are in a backup, and in the copy of a repair with what refers to them", async () => {
    const folder = testFolder(quickFolder());
    const path = join(folder, "store.db");
    const store = createSqliteStore({ path, recover: false });
    const ref = await createSession(store, "a");
    const [used, unused] = [await put(store, 700_000, 1), await put(store, 10)];
    await store.append(ref, [fileDraft(used), say("text")]);
    await store.fork?.fork(ref, refOf("b"), { sessionId: "session-b" });
    const before = await listed(store);
    expect(before.map(({ references }) => references).toSorted()).toEqual([0, 2]);
    await store.maintenance!.backup(join(folder, "backup.db"));
    // A changed record makes the store worth a repair.
    const database = new Database(path);
    database.exec("UPDATE store_records SET text = 'x' WHERE seq = 2");
    database.close();
    const findings: Finding[] = await Array.fromAsync(store.maintenance!.repair());
    await store.close();
    const copy = findings.find(({ path: at }) => at?.includes("repaired") === true)?.path ?? "";
    for (const each of [join(folder, "backup.db"), copy]) {
      await using again = createSqliteStore({ path: each });
      expect(await listed(again)).toEqual(before);
      expect(await lengthOf(again, used)).toBe(700_000);
      await again.remove(refOf("a"), { purge: true });
      expect(await lengthOf(again, used)).toBe(700_000);
      await again.remove(refOf("b"), { purge: true });
      expect((await listed(again)).map(({ id }) => id)).toEqual([unused]);
    }
  });

  it("are deleted to the end by the next process when a purge was killed", async () => {
    const path = join(testFolder(quickFolder()), "store.db");
    {
      await using store = createSqliteStore({ path });
      await put(store, 5_000_000);
    }
    const database = new Database(path);
    database.exec("UPDATE store_files SET file_id = NULL");
    database.close();
    {
      await using store = createSqliteStore({ path });
      await createSession(store, "a");
    }
    expect([rowsOf(path, "store_files"), rowsOf(path, "store_file_chunks")]).toEqual([0, 0]);
  });
});
