import { replaceFile } from "./file-work.ts";
import type { EntriesLogOptions } from "./read-log.ts";
import type { RowImage } from "./row-image.ts";
import { encodeRowChange, lineOfRow, type RowChange } from "./session-row.ts";

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
