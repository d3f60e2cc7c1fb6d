import { setImmediate as pause } from "node:timers/promises";
import type { SessionRef, SessionStore } from "@throughline/core";
import { touchedFiles } from "@throughline/core/internal";
import type { CommandContext } from "./command.ts";
import { counted } from "./counted.ts";
import type { TableColumn } from "./text-table.ts";

interface ChangedFile {
  readonly path: string;
  changes: number;
  readonly firstSeq: number;
  lastSeq: number;
}

const columns: readonly TableColumn[] = [
  { title: "FILE", least: 20, cut: "start" },
  { title: "CALLS", align: "right" },
  { title: "FIRST", align: "right" },
  { title: "LAST", align: "right" },
];

/** Prints the files that the calls of a session write, in the order in which they were first written. */
export async function showFiles(
  { output, signal }: Pick<CommandContext, "output" | "signal">,
  store: SessionStore,
  ref: SessionRef,
): Promise<void> {
  const files = new Map<string, ChangedFile>();
  for await (const { records } of store.read(ref, { signal })) {
    // A store that answers without waiting would block interrupts until every page is read.
    await pause();
    for (const { seq, record } of records)
      for (const { path } of touchedFiles(record)) {
        const file = files.get(path) ?? { path, changes: 0, firstSeq: seq, lastSeq: seq };
        files.set(path, file);
        file.changes += 1;
        file.lastSeq = seq;
      }
  }
  if (output.isJson) {
    for (const file of files.values()) await output.object({ kind: "changedFile", ...file });
    return output.end(files.size);
  }
  const rows = Array.from(files.values(), ({ path, changes, firstSeq, lastSeq }) => [
    path,
    String(changes),
    `#${firstSeq}`,
    `#${lastSeq}`,
  ]);
  await output.table(columns, rows);
  await output.flush();
  output.note(files.size === 0 ? "Its tools wrote no file." : `Its tools wrote ${counted(files.size, "file")}.`);
}
