import type * as nodeSqlite from "node:sqlite";
import { ThroughlineError } from "@throughline/core";
import { builtinSqlite } from "@throughline/core/internal/node";

export const sqliteCodes = { error: 1, busy: 5, locked: 6, corrupt: 11, notADatabase: 26 } as const;

export function resultCode(error: unknown): number {
  return ((error as { errcode?: number }).errcode ?? 0) & 0xff;
}

/** Returns the process's only SQLite library. Two libraries on one file would not see each other's locks. */
export function sqlite(): typeof nodeSqlite {
  const library = builtinSqlite();
  if (library !== undefined) return library;
  throw new ThroughlineError("STORE_UNSUPPORTED", "This Node has no node:sqlite, which the locks need.", {
    outcome: "not-applied",
    remedy: "Use Node 22.18 or newer.",
  });
}
