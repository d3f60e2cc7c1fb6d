import { closeSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { sessionRef, type SessionRef } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
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
