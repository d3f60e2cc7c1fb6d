import { mkdtempSync, rmSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import Database from "better-sqlite3";
import { damageEntry } from "../../store-jsonl/test/damage-entry.ts";
import { contentsBelow, makeQuickFolder } from "../../store-jsonl/test/temporary-folder.ts";
import { quickFolder } from "../../store-sqlite/test/test-folder.ts";
import type { ServedStore } from "./store-under-test.ts";

export async function memoryPlace(): Promise<ServedStore> {
  return { place: { kind: "memory" }, outlivesKill: false, dispose: () => Promise.resolve() };
}

export async function jsonlPlace(): Promise<ServedStore> {
  const path = makeQuickFolder();
  return {
    place: { kind: "jsonl", path },
    outlivesKill: true,
    files: async () => contentsBelow(path),
    damageEntry: (ref) => damageEntry(path, ref),
    dispose: async () => rmSync(path, { recursive: true, force: true }),
  };
}

export async function sqlitePlace(): Promise<ServedStore> {
  const folder = mkdtempSync(join(quickFolder(), "throughline-http-"));
  const path = join(folder, "store.db");
  return {
    place: { kind: "sqlite", path },
    outlivesKill: true,
    files: async () => Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name)))),
    damageEntry: ({ key }) => {
      const database = new Database(path);
      database
        .prepare(
          "UPDATE store_entries SET entry = '{' WHERE session = (SELECT session FROM store_sessions WHERE key = ?)",
        )
        .run(key);
      database.close();
    },
    dispose: async () => rmSync(folder, { recursive: true, force: true }),
  };
}
