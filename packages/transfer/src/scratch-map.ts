import { causeText } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import { builtinSqlite } from "@throughline/core/internal/node";

/**
 * Maps texts to texts, in the order of the keys and outside of the heap. An import keeps data for every name of a
 * folder, which may exceed the memory.
 */
export interface ScratchMap extends Disposable {
  has(key: string): boolean;
  get(key: string): string | null;
  set(key: string, value: string): void;
  delete(key: string): void;
  /** May be iterated while values are set; keys before the current position are not visited. */
  entries(): Iterable<readonly [key: string, value: string]>;
  /** Returns the values of all keys with the prefix, in key order. The result must fit in memory. */
  startingWith(prefix: string): readonly string[];
}

/** Limits the rows that one query fetches. */
const pageRows = 256;

/** @throws {ThroughlineError} FILE_UNREADABLE, also later when the temporary disk is full */
export function createScratchMap(): ScratchMap {
  const { DatabaseSync } = guarded(() => {
    const library = builtinSqlite();
    if (library === undefined) throw new Error("this Node has no node:sqlite");
    return library;
  });
  // Without a name SQLite uses a private temporary file. It is written only beyond the cache size and removed on close.
  const database = new DatabaseSync("");
  database.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -512");
  database.exec("CREATE TABLE map (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID; BEGIN");
  const find = database.prepare("SELECT value FROM map WHERE key = ?");
  const put = database.prepare("INSERT INTO map VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value");
  const remove = database.prepare("DELETE FROM map WHERE key = ?");
  const first = database.prepare(`SELECT key, value FROM map ORDER BY key LIMIT ${pageRows}`);
  const next = database.prepare(`SELECT key, value FROM map WHERE key > ? ORDER BY key LIMIT ${pageRows}`);
  const within = database.prepare("SELECT value FROM map WHERE key >= ? AND key < ? ORDER BY key");
  return {
    has: (key) => guarded(() => find.get(key) !== undefined),
    get: (key) => guarded(() => find.get(key)?.["value"] as string | undefined) ?? null,
    set: (key, value) => guarded(() => void put.run(key, value)),
    delete: (key) => guarded(() => void remove.run(key)),
    *entries() {
      let rows = guarded(() => first.all());
      while (rows.length > 0) {
        for (const { key, value } of rows) yield [key as string, value as string];
        const last = rows.at(-1)?.["key"] as string;
        rows = rows.length < pageRows ? [] : guarded(() => next.all(last));
      }
    },
    startingWith: (prefix) =>
      guarded(() => within.all(prefix, `${prefix}\u{10FFFF}`).map(({ value }) => value as string)),
    [Symbol.dispose]: () => {
      if (database.isOpen) database.close();
    },
  };
}

function guarded<Result>(act: () => Result): Result {
  try {
    return act();
  } catch (cause) {
    const why = causeText(cause);
    throw new ThroughlineError("FILE_UNREADABLE", `What a folder holds cannot be kept while it is imported: ${why}.`, {
      cause,
      remedy: "Make room where temporary files are kept (TMPDIR) and try again; what is imported stays.",
    });
  }
}
