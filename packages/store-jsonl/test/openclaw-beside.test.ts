import { execFile } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { sessionRef, type SessionRef } from "@throughline/core";
import { updateEntry } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

type Entries = Record<string, Record<string, unknown>>;

/** OpenClaw's way with its index: an exclusive lock file, the whole file read, changed and put in place by a rename. */
async function openclawEdit(folder: string, edit: (entries: Entries) => void): Promise<void> {
  const path = join(folder, "sessions.json");
  const lock = `${path}.lock`;
  for (let waited = 0; ; waited++) {
    try {
      const handle = openSync(lock, "wx", 0o600);
      writeFileSync(handle, JSON.stringify({ pid: process.pid, createdAt: new Date().toISOString() }));
      closeSync(handle);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || waited > 400) throw error;
      await pause(25);
    }
  }
  try {
    const entries = JSON.parse(readFileSync(path, "utf8")) as Entries;
    edit(entries);
    const temporary = `${path}.${process.pid}.tmp`;
    writeFileSync(temporary, JSON.stringify(entries, null, 2), { mode: 0o600 });
    renameSync(temporary, path);
  } finally {
    rmSync(lock);
  }
}

function header(id: string): string {
  return `${JSON.stringify({ type: "session", version: 3, id, timestamp: "2026-01-02T03:04:05.006Z", cwd: "/" })}\n`;
}

function entriesOf(folder: string): Entries {
  return JSON.parse(readFileSync(join(folder, "sessions.json"), "utf8")) as Entries;
}

function refOf(name: string): SessionRef {
  return sessionRef({ key: `agent:main:telegram:direct:${name}` });
}

function numbered(name: string, count: number): readonly (readonly [string, number])[] {
  return Array.from({ length: count }, (_, index) => [`${name}${index + 1}`, index + 1] as const);
}

/** A folder as OpenClaw leaves it, with two sessions. */
function openclawFolder(root: string): string {
  const folder = join(root, "agents/main/sessions");
  mkdirSync(folder, { recursive: true });
  const entries: Entries = {};
  for (const name of ["one", "two"]) {
    writeFileSync(join(folder, `${name}.jsonl`), header(name));
    entries[refOf(name).key] = { sessionId: name, updatedAt: 1, thinkingLevel: "low", futureField: { kept: [name] } };
  }
  Object.defineProperty(entries, "__proto__", { value: { sessionId: "proto", updatedAt: 1 }, enumerable: true });
  writeFileSync(join(folder, "sessions.json"), JSON.stringify(entries, null, 2));
  return folder;
}

describe("OpenClaw and the store in one folder", () => {
  it(
    "change sessions.json and entries in turns, and neither loses anything",
    { tags: ["slow"], timeout: 60_000 },
    async () => {
      const root = newFolder();
      const folder = openclawFolder(root);
      const store = createJsonlStore({ root });
      expect((await store.list()).sessions.length).toBe(2);
      const rounds = 12;
      // Both at once, in their own rhythm; each counts in a field of its own and in one that both sessions have.
      const theirs = async (): Promise<void> => {
        for (let round = 1; round <= rounds; round++) {
          await openclawEdit(folder, (entries) => {
            const entry = entries[refOf("one").key];
            Object.assign(entry ?? {}, { openclawCount: round, updatedAt: Date.now(), [`theirs${round}`]: true });
            if (round === 4) writeFileSync(join(folder, "three.jsonl"), header("three"));
            if (round === 4)
              entries[refOf("three").key] = { sessionId: "three", updatedAt: Date.now(), model: "theirs" };
            if (round === 8) delete entries[refOf("two").key]?.["thinkingLevel"];
          });
          await pause(60 + (round % 5) * 70);
        }
      };
      const ours = async (): Promise<void> => {
        for (let round = 1; round <= rounds * 3; round++) {
          await updateEntry(store, refOf("one"), (entry) => ({ ...entry, ourCount: round, [`ours${round}`]: true }));
          await store.append(refOf("two"), [userDraft(`n${round}`)], { entry: { totalTokens: round } });
          await pause(40);
        }
      };
      await Promise.all([theirs(), ours()]);
      await store.list();
      await store.close();
      const found = entriesOf(folder);
      const one = found[refOf("one").key] ?? {};
      expect(one).toMatchObject({ openclawCount: rounds, ourCount: rounds * 3, futureField: { kept: ["one"] } });
      for (let round = 1; round <= rounds; round++) expect(one[`theirs${round}`]).toBe(true);
      for (let round = 1; round <= rounds * 3; round++) expect(one[`ours${round}`]).toBe(true);
      expect(found[refOf("two").key]).toMatchObject({ totalTokens: rounds * 3 });
      expect(found[refOf("two").key]).not.toHaveProperty("thinkingLevel");
      expect(found[refOf("three").key]).toMatchObject({ sessionId: "three", model: "theirs" });
      expect(Object.hasOwn(found, "__proto__")).toBe(true);
      expect(existsSync(join(folder, "sessions.json.lock"))).toBe(false);
      const again = createJsonlStore({ root });
      expect((await again.load(refOf("one")))?.entry).toMatchObject({ openclawCount: rounds, ourCount: rounds * 3 });
      expect((await again.load(refOf("three")))?.entry["model"]).toBe("theirs");
      expect((await again.load(refOf("two")))?.messageCount).toBe(rounds * 3);
      await again.close();
    },
  );

  it.each([
    ["OpenClaw began", true],
    ["the store began", false],
  ])(
    "lose nothing of either in a folder that %s, as fast as both can write",
    { tags: ["slow"] },
    async (_who, isTheirs) => {
      const root = newFolder();
      const folder = isTheirs ? openclawFolder(root) : join(root, "agents/main/sessions");
      const store = createJsonlStore({ root, derivedDelayMs: 1 });
      const mine = refOf("mine");
      await store.list();
      await store.save(mine, { sessionId: "mine" }, { ifRevision: null });
      const path = join(folder, "sessions.json");
      await expect.poll(() => existsSync(path) && readFileSync(path, "utf8").includes(mine.key)).toBe(true);
      const child = new URL("openclaw-child.ts", import.meta.url).pathname;
      const editing = promisify(execFile)(process.execPath, ["--no-warnings", child, path, mine.key, "2500"]);
      let isOver = false;
      const edited = editing.finally(() => (isOver = true));
      let ours = 0;
      while (!isOver) {
        ours++;
        const entry = { [`ours${ours}`]: ours };
        // In turn in the entries log and in the transcript.
        await store.append(mine, ours % 2 === 0 ? [] : [userDraft(`n${ours}`)], { entry, durability: "process" });
        await pause(5);
      }
      const theirs = Number((await edited).stdout);
      const wanted = [...numbered("theirs", theirs), ...numbered("ours", ours)];
      expect(theirs).toBeGreaterThan(20);
      await store.close();
      const again = createJsonlStore({ root });
      const entry = (await again.load(mine))?.entry ?? {};
      expect(wanted.filter(([field, value]) => (entry as Record<string, unknown>)[field] !== value)).toEqual([]);
      const shown = entriesOf(folder)[mine.key] ?? {};
      expect(wanted.filter(([field, value]) => shown[field] !== value)).toEqual([]);
      await again.close();
    },
  );

  it("keeps an entry of OpenClaw's whose transcript is not there yet, however often it is written anew", async () => {
    const root = newFolder();
    const folder = openclawFolder(root);
    await openclawEdit(folder, (entries) => (entries[refOf("later").key] = { sessionId: "later", updatedAt: 5 }));
    for (let count = 1; count <= 3; count++) {
      const store = createJsonlStore({ root });
      await store.list();
      await store.append(refOf("one"), [], { entry: { totalTokens: count } });
      await store.close();
      expect(entriesOf(folder)[refOf("later").key]).toEqual({ sessionId: "later", updatedAt: 5 });
      expect(entriesOf(folder)[refOf("one").key]).toMatchObject({ totalTokens: count });
    }
    // What was ours goes: it is not taken for OpenClaw's.
    const store = createJsonlStore({ root });
    await store.remove(refOf("two"), { purge: true });
    await store.close();
    expect(Object.keys(entriesOf(folder))).not.toContain(refOf("two").key);
    expect(Object.keys(entriesOf(folder))).toContain(refOf("later").key);
  });
});
