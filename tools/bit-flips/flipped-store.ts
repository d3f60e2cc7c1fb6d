import { statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { SessionEventListener, SessionStore } from "../../packages/core/src/index.ts";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { repositoryRoot } from "../find-files.ts";
import { filesBelow } from "./kept-files.ts";

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
  /** The id of the only session that a file has to do with; null for a file of several. */
  sessionIdOf(file: string): string | null;
  /** A file that is derived from the others: half of the flips find a store without it. Null: there is none. */
  readonly derived: string | null;
  /** A file that another program writes as well, without checksums: a changed bit may be a change of its. Null: there is none. */
  readonly shared: string | null;
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
  sessionIdOf: () => null,
  derived: null,
  shared: null,
  openBackup: (path) => createSqliteStore({ path, recover: false }),
};

/** All transcripts are one kind: their names have ids in them. */
function kindOf(file: string): string {
  const name = file.replace(/^.*\//, "");
  return /^[0-9a-fs-]{36}.*\.jsonl/.test(name) ? "transcripts" : name;
}

const jsonl: FlippedStore = {
  open: (folder, onEvent) => createJsonlStore({ root: folder, ...(onEvent === undefined ? {} : { onEvent }) }),
  regions: (folder) =>
    filesBelow(folder)
      .map((file) => ({ file, name: kindOf(file), offset: 0, size: statSync(join(folder, file)).size }))
      .filter(({ size }) => size > 0),
  sessionIdOf: (file) => /([0-9a-fs-]{36})[^/]*\.jsonl/.exec(file)?.[1] ?? null,
  derived: "agents/main/throughline/index.db",
  shared: "agents/main/sessions/sessions.json",
  openBackup: (path) => createJsonlStore({ root: path }),
};

export const flippedStores: Readonly<Record<"sqlite" | "jsonl", FlippedStore>> = { sqlite, jsonl };
