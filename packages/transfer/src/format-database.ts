import { createFinding } from "@throughline/core/internal";
import { foreignFormats, type ForeignFormat } from "@throughline/foreign-formats";
import { databaseSource } from "./database-session.ts";
import { guarded, type FoundSource } from "./found-source.ts";
import type { ForeignDatabase } from "./node/foreign-database.ts";

export function formatOfDatabase(database: ForeignDatabase): ForeignFormat | null {
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
export async function* formatDatabase(database: ForeignDatabase, format: ForeignFormat): AsyncGenerator<FoundSource> {
  for (const session of format.database?.sessions(database) ?? []) {
    const { sessionId, entry, spawnedBy, lines, unread = [] } = session;
    const path = `${database.path}#${sessionId}`;
    const source = databaseSource({
      databasePath: database.path,
      format: format.name,
      agentId: null,
      key: null,
      sessionId,
      entry,
      lines,
      isArchived: false,
      archivedAtMs: null,
      findings: unread.map((message) => createFinding("SOURCE_UNREAD", message, { path })),
    });
    const found = { ...source, foreign: format, ...(spawnedBy === null ? {} : { spawnedBy }) };
    yield* guarded(source.path, one(found));
  }
}

async function* one(source: FoundSource): AsyncGenerator<FoundSource> {
  yield source;
}
