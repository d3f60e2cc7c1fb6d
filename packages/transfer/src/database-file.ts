import { ThroughlineError } from "@throughline/core";
import { agentOfSessionsDir } from "@throughline/openclaw-format/internal";
import { quote, createFinding } from "@throughline/core/internal";
import type { FoundSource } from "./found-source.ts";
import { goclawDatabase, isGoclawDatabase } from "./goclaw-database.ts";
import { openForeignDatabase, type ForeignDatabase } from "./node/foreign-database.ts";
import { isOpenclawDatabase, openclawDatabase } from "./openclaw-database.ts";
import { foreignFormats, type ForeignFormat } from "@throughline/foreign-formats";
import type { KnownSession } from "@throughline/foreign-formats/internal";
import { databaseSource } from "./database-session.ts";
import type { SearchLook } from "./search-look.ts";

/** Names the program of a database. */
interface DatabaseProgram {
  readonly format: string;
  /** States the program's name for messages to people. */
  readonly program: string;
}

/**
 * Detects which importable program a database belongs to; null for any other database. Opening it changes neither the
 * database nor the files beside it.
 * @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE, PATH_UNSAFE
 */
export async function databaseProgram(path: string): Promise<DatabaseProgram | null> {
  const database = await openForeignDatabase(path);
  try {
    if (isOpenclawDatabase(database)) return { format: "openclaw", program: "OpenClaw" };
    if (isGoclawDatabase(database)) return { format: "goclaw", program: "GoClaw" };
    const format = formatOfDatabase(database);
    return format === null ? null : { format: format.name, program: format.program };
  } finally {
    await database.close();
  }
}

/**
 * Yields the sessions of another program's database. The database stays open while they are imported one after the
 * other.
 * @throws {ThroughlineError} FORMAT_UNKNOWN, FILE_NOT_FOUND, FILE_UNREADABLE, STORE_VERSION_UNSUPPORTED
 */
export async function* databaseFile(path: string, look: SearchLook): AsyncGenerator<FoundSource> {
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
    const format = formatOfDatabase(database);
    if (format !== null) return yield* formatDatabase(database, format, look);
    throw new ThroughlineError("FORMAT_UNKNOWN", `The database ${quote(path)} holds no sessions of a known program.`, {
      details: { path },
    });
  } finally {
    await database.close();
  }
}

function formatOfDatabase(database: ForeignDatabase): ForeignFormat | null {
  for (const format of foreignFormats.values()) {
    const tables = Object.entries(format.database?.tables ?? {});
    const hasAll = tables.every(([table, names]) => {
      const columns = database.columns(table);
      return names.every((name) => columns.has(name));
    });
    if (tables.length > 0 && hasAll) return format;
  }
  return null;
}

/** Yields the sessions of another program's database. One row, or several rows that belong together, form a line. */
async function* formatDatabase(
  database: ForeignDatabase,
  format: ForeignFormat,
  look: SearchLook,
): AsyncGenerator<FoundSource> {
  const isKnown: KnownSession = (id, version) => look.isKnownSession(`${database.path}#${id}`, version);
  for (const session of format.database?.sessions(database, isKnown) ?? []) {
    const { sessionId, entry, spawnedBy, lines, unread = [] } = session;
    const path = `${database.path}#${sessionId}`;
    yield databaseSource({
      databasePath: database.path,
      format: format.name,
      foreign: format,
      sessionId,
      entry,
      lines,
      ...(spawnedBy === null ? {} : { spawnedBy }),
      findings: unread.map((message) => createFinding("SOURCE_UNREAD", message, { path })),
    });
  }
}
