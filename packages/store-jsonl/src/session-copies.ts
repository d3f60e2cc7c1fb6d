import { temporaryEnd, type AgentFolder } from "./agent-folder.ts";
import { flushFolder, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";

/**
 * Deletes transcripts by name, with their archived forms and every copy that the store made. Saved ends of the entries
 * log and damaged sessions.json files are deleted too, because they may hold any session's entry. Call it under the
 * entries lock, after the log has dropped the sessions.
 */
export function removeTranscripts(files: Files, folder: AgentFolder, fileNames: ReadonlySet<string>): void {
  removeNamed(files, folder.sessions, fileNames);
  removeNamed(files, folder.torn, new Set(["entries.log", "sessions.json"]));
  removeCopies(files, folder, fileNames);
}

/**
 * Deletes the files that the store wrote beside transcripts: torn tails, unfinished forks, repaired copies with
 * reports, and the rest of an interrupted rewrite. The deletion is flushed. Call it under the session's lock. A fork or
 * repair works without the lock, and checks its copy again under it.
 */
export function removeCopies(files: Files, folder: AgentFolder, fileNames: ReadonlySet<string>): void {
  const active = new Set([...fileNames].map(transcriptNameOf));
  for (const place of [folder.torn, folder.repaired]) removeNamed(files, place, active);
  removeNamed(files, folder.own, active, (name) => name.endsWith(temporaryEnd));
  for (const name of active) files.remove(folder.temporary(name.slice(0, -".jsonl".length)));
  // The flush also covers earlier deletions, which a power cut could otherwise undo.
  for (const place of [folder.torn, folder.repaired, folder.own])
    if (files.facts(place) !== null) flushFolder(files, place);
}

export function transcriptNameOf(fileName: string): string {
  const at = fileName.indexOf(".jsonl.");
  return at === -1 ? fileName : fileName.slice(0, at + ".jsonl".length);
}

/** Deletes files with one of the names, or with such a name before a dot. It lists the folder once for all names. */
function removeNamed(
  files: Files,
  folder: string,
  fileNames: ReadonlySet<string>,
  isMeant: (name: string) => boolean = () => true,
): void {
  if (files.facts(folder) === null) return;
  for (const name of files.names(folder))
    if (isMeant(name) && beginnings(name).some((beginning) => fileNames.has(beginning)))
      files.remove(`${folder}/${name}`);
}

function beginnings(name: string): readonly string[] {
  return [name, ...[...name.matchAll(/\./g)].map(({ index }) => name.slice(0, index))];
}

/** An unfinished copy of this age is abandoned, because no copy takes this long. */
const copyLifeMs = 86_400_000;

/**
 * Removes unfinished copies whose process died, because no other code deletes them. Their names contain their start
 * time.
 */
export function removeAbandoned(files: Files, folder: string, nowMs: number): void {
  withFileErrors(folder, () => {
    // The folder may be missing, because users may delete saved copies to free space.
    files.makeFolder(folder);
    for (const name of files.names(folder)) {
      const behind = name.slice(transcriptNameOf(name).length);
      const madeMs = Number(/\.(?:fork|tmp)-(\d+)-/.exec(behind)?.[1] ?? Number.NaN);
      if (nowMs - madeMs > copyLifeMs) files.remove(`${folder}/${name}`);
    }
  });
}
