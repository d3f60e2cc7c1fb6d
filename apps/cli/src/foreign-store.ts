import { dirname, join } from "node:path";
import { hasErrorCode, shellWord, ThroughlineError } from "@throughline/core";
import { isThere } from "@throughline/config/files";
import { sqliteFileOf } from "./sqlite-file.ts";

const programNames = { openclaw: "an OpenClaw", goclaw: "a GoClaw" } as const;

/**
 * Names the program whose database lies where a store was expected, with the command that imports it into a store of its
 * own. Any other error stays as it is.
 */
export async function explainForeignStore(error: unknown): Promise<unknown> {
  if (!hasErrorCode(error, "STORE_FOREIGN")) return error;
  const { path } = error.details;
  return typeof path === "string" ? foreignDatabaseError("STORE_FOREIGN", path, error) : error;
}

/** What a database of another program is, and what can be done with it. */
export async function foreignDatabaseError(
  code: "STORE_FOREIGN" | "INPUT_INVALID",
  path: string,
  cause?: unknown,
): Promise<ThroughlineError> {
  const program = await programOf(path);
  const place = `sqlite:${ownPlace(path)}`;
  const store = shellWord(place);
  const what = program === null ? "a SQLite database of another program" : `${programNames[program]} database`;
  const remedies = {
    known: `\`throughline import ${shellWord(path)} --store ${store}\` imports its sessions into a store. Use that store afterwards: --store ${store}, or THROUGHLINE_STORE.`,
    STORE_FOREIGN: `Name another place for the store: \`throughline chat --store ${store}\` starts one.`,
    INPUT_INVALID: `\`throughline import ${shellWord(path)} --dry-run --store ${store}\` says what is in it, where that program is known.`,
  };
  return new ThroughlineError(code, `${JSON.stringify(path)} is ${what}, not a store. It was not changed.`, {
    outcome: "not-applied",
    details: { path, program },
    cause,
    remedy: remedies[program === null ? code : "known"],
  });
}

async function programOf(path: string): Promise<"openclaw" | "goclaw" | null> {
  try {
    const { databaseProgram } = await import("@throughline/transfer");
    return await databaseProgram(path);
  } catch (error) {
    // A database that cannot be read belongs to no program that is known here.
    if (ThroughlineError.isInstance(error)) return null;
    throw error;
  }
}

/** A path beside the database that is free, or holds a store already. */
function ownPlace(path: string): string {
  for (let number = 1; ; number++) {
    const place = join(dirname(path), number === 1 ? "throughline.db" : `throughline-${number}.db`);
    if (!isThere(place) || sqliteFileOf(place) === "store") return place;
  }
}
