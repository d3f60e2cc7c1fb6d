import { ThroughlineError } from "@throughline/core";
import { agentOfSessionsDir } from "@throughline/openclaw-format/internal";
import { quote } from "@throughline/core/internal";
import type { FoundSource } from "./found-source.ts";
import { goclawDatabase, isGoclawDatabase } from "./goclaw-database.ts";
import { openForeignDatabase } from "./node/foreign-database.ts";
import { isOpenclawDatabase, openclawDatabase } from "./openclaw-database.ts";

/**
 * Detects which importable program a database belongs to; null for any other database. Opening it changes neither the
 * database nor the files beside it.
 * @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE, PATH_UNSAFE
 */
export async function databaseProgram(path: string): Promise<"openclaw" | "goclaw" | null> {
  const database = await openForeignDatabase(path);
  try {
    if (isOpenclawDatabase(database)) return "openclaw";
    return isGoclawDatabase(database) ? "goclaw" : null;
  } finally {
    await database.close();
  }
}

/**
 * Yields the sessions of another program's database. The database stays open while they are imported one after the
 * other.
 * @throws {ThroughlineError} FORMAT_UNKNOWN, FILE_NOT_FOUND, FILE_UNREADABLE, STORE_VERSION_UNSUPPORTED
 */
export async function* databaseFile(path: string): AsyncGenerator<FoundSource> {
  const database = await openForeignDatabase(path);
  try {
    if (database.columns("store_info").has("name")) {
      throw new ThroughlineError("INPUT_INVALID", `${quote(path)} is a store of Throughline's own.`, {
        outcome: "not-applied",
        details: { path },
        remedy: "Copy it: `throughline copy --all --store sqlite:FILE --to-store URL` keeps every record with its seq.",
      });
    }
    if (isOpenclawDatabase(database)) return yield* openclawDatabase(database, agentOfSessionsDir(path));
    if (isGoclawDatabase(database)) return yield* goclawDatabase(database);
    // Few imports read such a database, so its formats load on demand.
    const { formatDatabase, formatOfDatabase } = await import("./format-database.ts");
    const format = formatOfDatabase(database);
    if (format !== null) return yield* formatDatabase(database, format);
    throw new ThroughlineError("FORMAT_UNKNOWN", `The database ${quote(path)} holds no sessions of a known program.`, {
      details: { path },
    });
  } finally {
    await database.close();
  }
}
