import { dirname, join } from "node:path";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import { shellWord } from "@throughline/core/internal";
import type { databaseProgram } from "../database-file.ts";
import { fileExists, sqliteFileOf } from "./sqlite-file.ts";

/**
 * Adds to STORE_FOREIGN the program that owns the database, and the command that imports it into a new store. Returns
 * any other error unchanged.
 */
export async function explainForeignStore(error: unknown): Promise<unknown> {
  if (!hasErrorCode(error, "STORE_FOREIGN")) return error;
  const { path } = error.details;
  return typeof path === "string" ? foreignDatabaseError("STORE_FOREIGN", path, error) : error;
}

/**
 * Creates the error for a path that holds another program's database. It names the program and the command that imports
 * it.
 * @param code STORE_FOREIGN if a store was expected, INPUT_INVALID if the user named a file to check
 */
export async function foreignDatabaseError(
  code: "STORE_FOREIGN" | "INPUT_INVALID",
  path: string,
  cause?: unknown,
): Promise<ThroughlineError> {
  const known = await programOf(path);
  const place = `sqlite:${ownPlace(path)}`;
  const store = shellWord(place);
  const what = `a SQLite database of ${known === null ? "another program" : known.program}`;
  const remedies = {
    known: `\`throughline import ${shellWord(path)} --store ${store}\` imports its sessions into a store. Use that store afterwards: --store ${store}, or THROUGHLINE_STORE.`,
    STORE_FOREIGN: `Name another place for the store: \`throughline chat --store ${store}\` starts one.`,
    INPUT_INVALID: `\`throughline import ${shellWord(path)} --dry-run --store ${store}\` says what is in it, where that program is known.`,
  };
  return new ThroughlineError(code, `${JSON.stringify(path)} is ${what}, not a store. It was not changed.`, {
    outcome: "not-applied",
    details: { path, program: known?.format ?? null },
    cause,
    remedy: remedies[known === null ? code : "known"],
  });
}

async function programOf(path: string): ReturnType<typeof databaseProgram> {
  try {
    // Few callers meet such a database, so the module loads on demand.
    const database = await import("../database-file.ts");
    return await database.databaseProgram(path);
  } catch (error) {
    // An unreadable database belongs to no known program.
    if (ThroughlineError.isInstance(error)) return null;
    throw error;
  }
}

/** Finds a path beside the database that is free or holds a Throughline store. */
function ownPlace(path: string): string {
  for (let number = 1; ; number++) {
    const place = join(dirname(path), number === 1 ? "throughline.db" : `throughline-${number}.db`);
    if (!fileExists(place) || sqliteFileOf(place) === "store") return place;
  }
}
