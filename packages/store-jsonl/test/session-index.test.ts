import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { sessionRef, type Clock, type SessionEvent, type SessionPage, type SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { createXorCodec } from "@throughline/store-conformance";
import { createJsonlStore } from "@throughline/store-jsonl";
import { nodeFiles } from "../src/files.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { faultyFiles } from "./faulty-files.ts";
import { findingCodesOf, mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { contentsBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const indexOf = (root: string) => `${root}/agents/main/throughline/index.db`;
const refOf = (name: string | number) => sessionRef({ key: `agent:main:n${name}` });

async function fill(root: string, count: number): Promise<void> {
  const store = createJsonlStore({ root, sessionsJson: false });
  for (let index = 0; index < count; index++)
    await store.save(refOf(index), { sessionId: `s${index}`, label: "l" }, { ifRevision: null, durability: "none" });
  await store.close();
}

/** Transcripts alone, which the first list takes over: many of them are made faster so. */
async function fillByHand(root: string, count: number): Promise<void> {
  mkdirSync(`${root}/agents/main/sessions`, { recursive: true });
  for (let index = 0; index < count; index++) {
    const header = {
      type: "session",
      version: 3,
      id: `s${index}`,
      timestamp: "2026-01-02T03:04:05.006Z",
      cwd: "",
      key: refOf(index).key,
    };
    writeFileSync(transcriptOf(root, `s${index}`), `${JSON.stringify(header)}\n${foreignLine("aaaa0001")}`);
  }
  await listed(root);
}

function foreignLine(id: string, time = "2030-01-02T03:04:05.006Z"): string {
  const message = { role: "user", content: "theirs" };
  return `${JSON.stringify({ type: "message", id, parentId: null, timestamp: time, message })}\n`;
}

/** What a store says that opens the same files without the index. */
async function withoutIndex(
  root: string,
  clock: Clock,
  list: (store: SessionStore) => Promise<SessionPage>,
): Promise<SessionPage> {
  const copy = newFolder();
  cpSync(root, copy, { recursive: true, preserveTimestamps: true });
  rmSync(indexOf(copy), { force: true });
  const store = createJsonlStore({ root: copy, clock, sessionsJson: false });
  try {
    return await list(store);
  } finally {
    await store.close();
  }
}

async function listed(root: string): Promise<readonly unknown[]> {
  const store = createJsonlStore({ root, sessionsJson: false });
  const { sessions } = await store.list();
  await store.close();
  return sessions.map(({ ref, messageCount }) => [ref.key, messageCount]);
}

describe("the index of the sessions", () => {
  it(
    "opens no transcript for a list and reads the log once, however many sessions there are",
    { tags: ["slow"] },
    async () => {
      const costs: Record<string, number>[] = [];
      for (const count of testSize({ short: [100, 1500], long: [100, 1000, 10_000] })) {
        const root = newFolder();
        await fillByHand(root, count);
        await new Promise((resolve) => setTimeout(resolve, 100));
        await listed(root);
        const faults = faultyFiles();
        const store = createJsonlStore({ root, sessionsJson: false, files: faults.files });
        expect((await store.list({ limit: 50 })).sessions).toHaveLength(50);
        costs.push({ ...faults.counts, logBytes: statSync(`${root}/agents/main/throughline/entries.log`).size });
        await store.close();
      }
      for (const { facts = 0, bytesRead = 0, names = 0, open = 0, logBytes = 0 } of costs) {
        // One look at each transcript of the page, at 256 others, and a few at folders, the log, the index, partial replies and files.
        expect(facts).toBeLessThan(51 + 256 + 28);
        // The log, and the descriptor in reserve.
        expect(open).toBe(2);
        expect(names).toBe(1);
        expect(bytesRead).toBeLessThanOrEqual(logBytes + 2 * 256);
      }
    },
  );

  it(
    "shows what another program appended to a transcript, and where it belongs by now",
    { tags: ["slow"] },
    async () => {
      const root = newFolder();
      await fill(root, 300);
      await listed(root);
      appendFileSync(transcriptOf(root, "s299"), foreignLine("aaaa0001"));
      expect((await listed(root))[0]).toEqual([refOf(299).key, 1]);
    },
  );

  it(
    "shows what a process wrote that died before it could say so, among more sessions than are looked at",
    { tags: ["slow"] },
    async () => {
      const root = newFolder();
      await fill(root, 1000);
      await listed(root);
      const dying = `
      const { createJsonlStore } = await import("@throughline/store-jsonl");
      const store = createJsonlStore({ root: ${JSON.stringify(root)} });
      const ref = { namespace: "", agentId: "main", key: ${JSON.stringify(refOf(3).key)} };
      await store.append(ref, [{ type: "message", message: { role: "user", content: "last words" } }]);
      process.kill(process.pid, "SIGKILL");`;
      const args = ["--no-warnings", "--conditions=@throughline/source", "--input-type=module", "-e", dying];
      expect(spawnSync(process.execPath, args, { cwd: import.meta.dirname }).signal).toBe("SIGKILL");
      expect((await listed(root))[0]).toEqual([refOf(3).key, 1]);
    },
  );

  it.each([
    ["is gone", (path: string) => rmSync(path), []],
    ["is garbage", (path: string) => writeFileSync(path, "garbage ".repeat(2000)), ["INDEX_REBUILT"]],
    [
      "is cut short",
      (path: string) => writeFileSync(path, "SQLite format 3\0 and then nothing of it"),
      ["INDEX_REBUILT"],
    ],
    [
      "is another program's",
      (path: string) => runSql(path, "DROP TABLE sessions; PRAGMA application_id = 7"),
      ["INDEX_REBUILT"],
    ],
    ["is of a newer version", (path: string) => runSql(path, "PRAGMA user_version = 99"), ["INDEX_REBUILT"]],
    [
      "holds a row that was changed",
      (path: string) => runSql(path, `UPDATE sessions SET line = replace(line, '"l"', '"x"')`),
      ["INDEX_REBUILT"],
    ],
    ["lost a table", (path: string) => runSql(path, "DROP TABLE writing"), ["INDEX_REBUILT"]],
  ] as const)("that %s is made anew, and nothing is missing", async (_what, harm, codes) => {
    const root = newFolder();
    await fill(root, 20);
    const before = await listed(root);
    harm(indexOf(root));
    const events: SessionEvent[] = [];
    const store = createJsonlStore({ root, sessionsJson: false, onEvent: (event) => void events.push(event) });
    const { sessions } = await store.list();
    expect(sessions.map(({ ref, messageCount }) => [ref.key, messageCount])).toEqual(before);
    expect(sessions.every(({ entry }) => entry.label === "l")).toBe(true);
    expect(findingCodesOf(events)).toEqual(codes);
    await store.close();
    expect(await listed(root)).toEqual(before);
    expect(existsSync(indexOf(root))).toBe(true);
  });

  it("gives the same list as no index, whatever happens to it and to the files", { tags: ["slow"] }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 10 }), fc.nat(7)), { minLength: 4, maxLength: 14 }),
        async (steps) => {
          const root = newFolder();
          let nowMs = 1_767_323_045_006;
          const clock = { ...systemClock, nowMs: () => nowMs };
          const open = () => createJsonlStore({ root, clock, sessionsJson: false });
          let stores = [open(), open()];
          let count = 0;
          await stores[0]?.save(mainRef, { sessionId: "first" }, { ifRevision: null });
          for (const [kind, number] of steps) {
            const store = stores[number % 2] ?? open();
            const ref = refOf(number);
            const state = await store.load(ref);
            const path = state === null ? transcriptOf(root, `f${count}`) : transcriptOf(root, state.sessionId);
            if (kind <= 1 && state === null) await store.save(ref, { sessionId: `s${count}` }, { ifRevision: null });
            else if (kind <= 2 && state !== null)
              await store.append(ref, [userDraft("x")], { entry: { label: `l${count}` }, durability: "none" });
            else if (kind === 3 && state !== null)
              await store.save(ref, { sessionId: state.sessionId, at: count }, { ifRevision: state.revision });
            else if (kind === 4 && state !== null) await store.remove(ref, { purge: number % 4 === 0 });
            else if (kind === 5)
              appendFileSync(path, foreignLine(`aaaa${String(count).padStart(4, "0")}`, "2026-01-02T03:04:05.006Z"));
            else if (kind === 6) await store.list({ limit: 2 });
            else if (kind === 7) {
              await Promise.all(stores.map((one) => one.close()));
              if (number % 2 === 0) rmSync(indexOf(root), { force: true });
              stores = [open(), open()];
            } else if (kind === 8)
              for (const end of ["", "-wal", "-shm"]) rmSync(`${indexOf(root)}${end}`, { force: true });
            else if (kind === 9) {
              await Promise.all(stores.map((one) => one.close()));
              if (existsSync(indexOf(root)) && !existsSync(`${root}/older.db`))
                copyFileSync(indexOf(root), `${root}/older.db`);
              // Over the bytes of the present one: the same file, as it was some time ago.
              else if (existsSync(`${root}/older.db`)) copyFileSync(`${root}/older.db`, indexOf(root));
              stores = [open(), open()];
            } else if (state !== null) await store.append(ref, [userDraft("y")], { durability: "none" });
            count++;
            nowMs += 1000;
          }
          for (const query of [
            { state: "any" },
            { sort: "key", limit: 3 },
            { limit: 2, keyPrefix: "agent:main:n" },
          ] as const) {
            const expected = await withoutIndex(root, clock, (store) => store.list(query));
            for (const store of stores) expect(await store.list(query)).toEqual(expected);
          }
          await Promise.all(stores.map((one) => one.close()));
        },
      ),
      { numRuns: testSize({ short: 25, long: 250 }) },
    );
  });

  it("holds nothing in plain text under a codec, and is of no use under another", async () => {
    const root = newFolder();
    const codec = createXorCodec();
    const store = await storeWithSession(root, { codec });
    await store.append(mainRef, [userDraft("secret")], { entry: { label: "secret" } });
    await store.close();
    const again = createJsonlStore({ root, codec });
    expect((await again.list()).sessions[0]).toMatchObject({ entry: { label: "secret" }, messageCount: 1 });
    await again.close();
    expect(spawnSync("grep", ["-c", "secret", indexOf(root)]).stdout.toString()).toBe("0\n");
  });

  it.skipIf(process.getuid?.() === 0)("is not needed in a folder that cannot be written", async () => {
    const root = newFolder();
    await fill(root, 5);
    const before = await listed(root);
    const own = `${root}/agents/main/throughline`;
    rmSync(indexOf(root));
    chmodSync(own, 0o500);
    expect(await listed(root)).toEqual(before);
    expect(readdirSync(own)).not.toContain("index.db");
    chmodSync(own, 0o700);
  });

  it("shows a session that another process is just bringing up to date", async () => {
    const root = newFolder();
    await fill(root, 5);
    await listed(root);
    let isArmed = false;
    const { files } = faultyFiles();
    const facts = (path: string): ReturnType<typeof files.facts> => {
      // What was read is taken out with the line of the log that is new, and put in again a moment later.
      if (isArmed && path.endsWith(".jsonl")) {
        isArmed = false;
        runSql(indexOf(root), "UPDATE sessions SET seen = NULL, folded = NULL, summary = NULL WHERE place = 3");
      }
      return files.facts(path);
    };
    const store = createJsonlStore({ root, sessionsJson: false, files: { ...files, facts } });
    expect((await store.list()).sessions).toHaveLength(5);
    isArmed = true;
    expect((await store.list()).sessions).toHaveLength(5);
    expect(isArmed).toBe(false);
    await store.close();
  });

  it("is not waited for while another process keeps it", async () => {
    const root = newFolder();
    await fill(root, 20);
    const before = await listed(root);
    const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
    const database = new DatabaseSync(indexOf(root));
    database.exec("BEGIN EXCLUSIVE");
    const store = createJsonlStore({ root, sessionsJson: false });
    await store.append(refOf(0), [userDraft("x")]);
    const { sessions } = await store.list();
    expect(sessions).toHaveLength(before.length);
    expect(sessions[0]?.ref.key).toBe(refOf(0).key);
    await store.close();
    database.exec("ROLLBACK");
    database.close();
    expect((await listed(root))[0]).toEqual([refOf(0).key, 1]);
  });

  it("is done without while a named pipe lies where SQLite keeps its journal", { tags: ["slow"] }, async () => {
    const root = newFolder();
    await fill(root, 3);
    spawnSync("mkfifo", [`${indexOf(root)}-journal`]);
    const listing = `
      import { createJsonlStore } from "@throughline/store-jsonl";
      const store = createJsonlStore({ root: ${JSON.stringify(root)} });
      console.log((await store.list()).sessions.length);
      await store.close();`;
    const flags = ["--conditions=@throughline/source", "--input-type=module", "-e", listing];
    const { stdout } = spawnSync(process.execPath, flags, {
      cwd: import.meta.dirname,
      timeout: 120_000,
      encoding: "utf8",
    });
    expect(stdout).toBe("3\n");
  });

  it.for([
    ["summary of a session", "UPDATE sessions SET summary = '{' || summary"],
    ["place in the log", "UPDATE state SET value = '{' || value WHERE name = 'log'"],
  ] as const)("is put aside when the %s in it is no JSON", async ([, sql]) => {
    const root = newFolder();
    await fill(root, 3);
    const before = await listed(root);
    runSql(indexOf(root), sql);
    const events: SessionEvent[] = [];
    const store = createJsonlStore({ root, sessionsJson: false, onEvent: (event) => void events.push(event) });
    expect((await store.load(refOf(0)))?.sessionId).toBe("s0");
    expect((await store.list()).sessions).toHaveLength(3);
    await store.close();
    expect(findingCodesOf(events)).toContain("INDEX_REBUILT");
    expect(await listed(root)).toEqual(before);
  });
});

function runSql(path: string, sql: string): void {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

describe("an index that is not of this log", () => {
  const labels = ({ sessions }: SessionPage): readonly unknown[] => sessions.map(({ entry }) => entry["label"]);

  it("is not believed though the log has the number of the one it was of", async () => {
    const root = newFolder();
    const log = `${root}/agents/main/throughline/entries.log`;
    await fill(root, 2);
    const store = createJsonlStore({ root, sessionsJson: false });
    await store.list();
    const before = readFileSync(log);
    await store.save(refOf(0), { sessionId: "s0", label: "other", long: "x".repeat(2000) }, { ifRevision: 1 });
    await store.list();
    await store.close();
    // A copy is put back into the same file; a new log that gets the number of an earlier one looks the same.
    writeFileSync(log, before);
    const again = createJsonlStore({ root, sessionsJson: false });
    for (let look = 0; look < 2; look++) expect(labels(await again.list())).toEqual(["l", "l"]);
    await again.close();
  });

  it("is not written by who has not seen that the log is another one by now", { tags: ["slow"] }, async () => {
    const root = newFolder();
    const store = createJsonlStore({ root, sessionsJson: false });
    await store.save(mainRef, { sessionId: "s1", label: "gone for good" }, { ifRevision: null });
    await store.close();
    rmSync(indexOf(root));
    let isArmed = true;
    const isWritable = (path: string): boolean => {
      // Right before the index is written, after everything was read for it.
      if (isArmed && path.endsWith("/throughline")) {
        isArmed = false;
        spawnSync(process.execPath, [join(import.meta.dirname, "change-child.ts"), root, "purged"]);
      }
      return nodeFiles.isWritable(path);
    };
    const slow = createJsonlStore({ root, sessionsJson: false, files: { ...nodeFiles, isWritable } });
    await slow.list();
    expect(isArmed).toBe(false);
    await slow.close();
    for (const bytes of contentsBelow(root)) expect(Buffer.from(bytes).includes("gone for good")).toBe(false);
  });

  it("is deleted by a purge that finds it busy", async () => {
    const root = newFolder();
    const store = createJsonlStore({ root, sessionsJson: false });
    await store.save(mainRef, { sessionId: "s1", label: "gone for good" }, { ifRevision: null });
    await store.list();
    const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
    const other = new DatabaseSync(indexOf(root));
    other.exec("BEGIN IMMEDIATE");
    await store.remove(mainRef, { purge: true });
    for (const bytes of contentsBelow(root)) expect(Buffer.from(bytes).includes("gone for good")).toBe(false);
    other.close();
    await store.close();
  });
});
