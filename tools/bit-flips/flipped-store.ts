import { copyFileSync, cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { SessionEventListener, SessionStore } from "../../packages/core/src/index.ts";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { repositoryRoot } from "../find-files.ts";

/** Bytes of one table, index or kind of file. */
export interface FlipRegion {
  /** Relative to the folder of the store. */
  readonly file: string;
  readonly name: string;
  readonly offset: number;
  readonly size: number;
}

/** A kind of store whose files are changed. */
export interface FlippedStore {
  open(folder: string, onEvent?: SessionEventListener): SessionStore;
  /** Everything that may be changed; the store is closed. */
  regions(folder: string): readonly FlipRegion[];
  /** A copy of the closed store. */
  copy(from: string, to: string): void;
  /** A store over what `backup` wrote. */
  openBackup(path: string): SessionStore;
}

const databaseName = "store.db";
type Driver = new (
  path: string,
  options: { readonly readonly: boolean },
) => {
  prepare(sql: string): { all(): unknown[] };
  pragma(name: string, options: { readonly simple: boolean }): unknown;
  close(): void;
};

function pagesOf(path: string): readonly FlipRegion[] {
  // The tools have no dependency of their own: the store's is taken.
  const Database = createRequire(join(repositoryRoot, "packages/store-sqlite/package.json"))(
    "better-sqlite3",
  ) as Driver;
  const database = new Database(path, { readonly: true });
  try {
    const used = database.prepare("SELECT name, pgoffset AS offset, pgsize AS size FROM dbstat").all() as Omit<
      FlipRegion,
      "file"
    >[];
    const taken = new Set(used.map(({ offset }) => offset));
    const pageBytes = Number(database.pragma("page_size", { simple: true }));
    const free = Array.from({ length: statSync(path).size / pageBytes }, (_, page) => page * pageBytes)
      .filter((offset) => !taken.has(offset))
      .map((offset) => ({ name: "(free pages)", offset, size: pageBytes }));
    return [...used, ...free].map((region) => ({ ...region, file: databaseName }));
  } finally {
    database.close();
  }
}

const sqlite: FlippedStore = {
  open: (folder, onEvent) =>
    createSqliteStore({
      path: join(folder, databaseName),
      recover: false,
      ...(onEvent === undefined ? {} : { onEvent }),
    }),
  regions: (folder) => pagesOf(join(folder, databaseName)),
  copy: (from, to) => {
    rmSync(to, { recursive: true, force: true });
    cpSync(from, to, { recursive: true });
  },
  openBackup: (path) => createSqliteStore({ path, recover: false }),
};

/** A session's files are one kind: their names have ids in them. */
function kindOf(file: string): string {
  const name = file.replace(/^.*\//, "");
  return /^[0-9a-f-]{36}.*\.jsonl/.test(name) ? "transcripts" : name;
}

const jsonl: FlippedStore = {
  open: (folder, onEvent) => createJsonlStore({ root: folder, ...(onEvent === undefined ? {} : { onEvent }) }),
  regions: (folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
      .map((file) => ({ file, name: kindOf(file), offset: 0, size: statSync(join(folder, file)).size }))
      .filter(({ size }) => size > 0),
  copy: sqlite.copy,
  openBackup: (path) => createJsonlStore({ root: path }),
};

export const flippedStores: Readonly<Record<"sqlite" | "jsonl", FlippedStore>> = { sqlite, jsonl };

/** Changes one bit of a file. */
export function flipBit(path: string, offset: number, bit: number): void {
  const bytes = readFileSync(path);
  bytes[offset] = (bytes[offset] ?? 0) ^ (1 << bit);
  const changed = `${path}.changed`;
  writeFileSync(changed, bytes);
  copyFileSync(changed, path);
  rmSync(changed);
}
