import type * as nodeSqlite from "node:sqlite";
import { ThroughlineError } from "@throughline/core";

/** SQLite's primary result codes that something is done about. */
export const sqliteCodes = { error: 1, busy: 5, locked: 6, corrupt: 11, notADatabase: 26 } as const;

export function resultCode(error: unknown): number {
  return ((error as { errcode?: number }).errcode ?? 0) & 0xff;
}

let loaded: typeof nodeSqlite | null = null;

/**
 * The one SQLite of the process: two libraries on the same file would not see each other's locks. Node 22 says on
 * stderr that SQLite is experimental; that one line is left out, every other warning passes.
 */
export function sqlite(): typeof nodeSqlite {
  if (loaded !== null) return loaded;
  const emitWarning = process.emitWarning;
  process.emitWarning = ((warning: string | Error, ...rest: readonly unknown[]) => {
    const text = typeof warning === "string" ? warning : warning.message;
    if (!text.startsWith("SQLite is an experimental feature")) Reflect.apply(emitWarning, process, [warning, ...rest]);
  }) as typeof process.emitWarning;
  try {
    loaded = process.getBuiltinModule("node:sqlite");
  } finally {
    process.emitWarning = emitWarning;
  }
  if (loaded === undefined) {
    throw new ThroughlineError("STORE_UNSUPPORTED", "This Node has no node:sqlite, which the locks need.", {
      outcome: "not-applied",
      remedy: "Use Node 22.18 or newer.",
    });
  }
  return loaded;
}
