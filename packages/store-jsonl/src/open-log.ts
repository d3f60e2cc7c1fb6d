import { ThroughlineError, type Finding } from "@throughline/core";
import { quote, refused } from "@throughline/core/store";
import type { AgentFolder } from "./agent-folder.ts";
import { factsOfOpened, flushFolder, openIfThere, replaceFile } from "./file-work.ts";
import type { Files } from "./files.ts";
import { createOpenFile, type OpenFile } from "./open-file.ts";
import type { EntriesLogOptions } from "./read-log.ts";
import type { RowImage } from "./row-image.ts";
import { setTailAside } from "./torn-tail.ts";
import { encodeRowChange, lineOfRow, type RowChange } from "./session-row.ts";

/** The entries log, open. */
export interface OpenLog extends OpenFile {
  readonly identity: string;
}

/** The log as it is there, for reading alone where it cannot be written; null when there is none. */
export function openLog(files: Files, folder: AgentFolder, sizeOf: () => number): OpenLog | null {
  let isWritable = true;
  let handle: number | null;
  try {
    handle = openIfThere(files, folder.entriesLog, "append");
  } catch (error) {
    if (!ThroughlineError.isInstance(error) || error.code !== "STORE_READ_ONLY") throw error;
    isWritable = false;
    handle = openIfThere(files, folder.entriesLog);
  }
  return handle === null ? null : opened(files, folder, { handle, isWritable, sizeOf });
}

/**
 * The log to write to; it is created if it does not exist. Under the entries lock. @throws {ThroughlineError}
 * STORE_READ_ONLY
 */
export function writableLog(files: Files, folder: AgentFolder, open: OpenLog | null, sizeOf: () => number): OpenLog {
  if (open === null) return createLog(files, folder, sizeOf);
  if (open.isWritable) return open;
  throw refused("STORE_READ_ONLY", `${quote(folder.entriesLog)} cannot be written.`, { path: folder.entriesLog });
}

/** A new log, whose name is on the disk. */
function createLog(files: Files, folder: AgentFolder, sizeOf: () => number): OpenLog {
  const handle = files.open(folder.entriesLog, "create");
  try {
    flushFolder(files, folder.own);
  } catch (error) {
    // Left behind it would be taken for a log whose name is safe.
    files.close(handle);
    files.remove(folder.entriesLog);
    throw error;
  }
  return Object.assign(opened(files, folder, { handle, isWritable: true, sizeOf }), { isNamed: true });
}

function opened(
  files: Files,
  { own }: AgentFolder,
  { handle, ...how }: { readonly handle: number; readonly isWritable: boolean; sizeOf(): number },
): OpenLog {
  const { identity } = factsOfOpened(files, handle);
  const flushName = (): void => flushFolder(files, own);
  return Object.assign(createOpenFile(files, handle, { ...how, flushName }), { identity });
}

/** Puts a log with what an image holds, these purges that may be unfinished and these lines of a newer version in the place of the one there is. Under the entries lock. */
export function replaceLog(
  { files, folder, codec, agent }: Pick<EntriesLogOptions, "files" | "folder" | "codec" | "agent">,
  { rows, keyed }: RowImage,
  removed: readonly string[],
  newer: readonly string[],
): void {
  replaceFile(files, folder.temporary("entries.log"), folder.entriesLog, (append) => {
    const write = (change: RowChange): void => append(Buffer.from(`${encodeRowChange(change, codec, agent)}\n`));
    for (const row of rows.values()) {
      const { sessionId } = row;
      const appends = keyed.of(sessionId);
      write({ op: "save", rows: [row], ...(appends.length === 0 ? {} : { keyed: [{ sessionId, appends }] }) });
    }
    if (removed.length > 0) write({ op: "remove", rows: [], removed });
    for (const line of newer) append(Buffer.from(`${line}\n`));
  });
}

/** How long a log with what an image holds is. */
export function lengthOf(
  { rows, keyed }: RowImage,
  { codec, agent }: Pick<EntriesLogOptions, "codec" | "agent">,
): number {
  let bytes = 0;
  for (const row of rows.values()) bytes += Buffer.byteLength(lineOfRow(row, codec, agent)) + 1;
  for (const { appends } of keyed) bytes += Buffer.byteLength(JSON.stringify(appends));
  return bytes;
}

/** Cuts off what was never acknowledged, once a copy of it is safe. Under the entries lock. */
export function setLogTailAside(
  files: Files,
  { entriesLog: path, torn: folder }: AgentFolder,
  { handle }: OpenLog,
  from: number,
  nowMs: number,
): Finding {
  return setTailAside(files, { handle, path, key: null, code: "TAIL_TORN", from, folder, nowMs });
}
