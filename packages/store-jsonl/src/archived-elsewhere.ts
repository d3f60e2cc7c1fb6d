import type { AgentFolder } from "./agent-folder.ts";
import type { EntriesLog } from "./entries-log.ts";
import { withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { archivedFrom } from "./recover-entries.ts";
import type { SessionRow } from "./session-row.ts";

export interface ArchivedSearch {
  readonly files: Files;
  readonly folder: AgentFolder;
  readonly log: EntriesLog;
  /** The row with the entry changes that lie in its transcript. */
  readonly fold: (row: SessionRow) => SessionRow;
}

/**
 * Sessions whose transcript another program archived: OpenClaw renames it when it resets or deletes a session, and says so
 * in sessions.json before or afterwards. They go by the new name from now on, and are archived.
 */
export function archivedElsewhere({ files, folder, log, fold }: ArchivedSearch): readonly SessionRow[] {
  if (log.identity === "" || files.facts(folder.sessions) === null) return [];
  const names = new Set(withFileErrors(folder.sessions, () => files.names(folder.sessions)));
  const known = log.fileNames();
  const moved = new Map<string, string>();
  // The newest, should there be several: their names end with a time.
  for (const name of [...names].toSorted()) {
    const active = known.has(name) ? null : archivedFrom(name);
    if (active !== null && known.has(active) && !names.has(active)) moved.set(active, name);
  }
  return [...moved].flatMap(([active, name]) => {
    const row = rowOfFile(log, active);
    if (row === null || [row.fileName, row.formerFileName].some((one) => one !== undefined && names.has(one)))
      return [];
    const { formerFileName: _gone, ...rest } = row;
    const found = fold({ ...rest, fileName: name });
    return [row.isArchived ? found : { ...found, isArchived: true, revision: found.revision + 1 }];
  });
}

/** Most transcripts are called after their session. */
function rowOfFile(log: EntriesLog, fileName: string): SessionRow | null {
  const named = log.row(fileName.slice(0, -".jsonl".length));
  if (named !== null && named.fileName.startsWith(fileName)) return named;
  return [...log.all().values()].find((row) => row.fileName === fileName) ?? null;
}
