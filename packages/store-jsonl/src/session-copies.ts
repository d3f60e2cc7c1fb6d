import { temporaryEnd, type AgentFolder } from "./agent-folder.ts";
import { flushFolder, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";

/**
 * Deletes transcripts by their names, with their archived forms and every copy the store made of them. What was torn off the entries log and
 * every damaged sessions.json that was kept go too, for nobody can tell whose entries they hold. Under the entries lock: the
 * log has no such session any more.
 */
export function removeTranscripts(files: Files, folder: AgentFolder, fileNames: ReadonlySet<string>): void {
  removeNamed(files, folder.sessions, fileNames);
  removeNamed(files, folder.torn, new Set(["entries.log", "sessions.json"]));
  removeCopies(files, folder, fileNames);
}

/**
 * Deletes the files that the store wrote beside transcripts: torn tails, unfinished forks, repaired copies with their
 * reports, and the rest of a rewrite whose process died. Durably. Under the session's lock, so that nobody uses them.
 * Whoever makes one without it, as a fork or a repair, looks under the lock whether it is still of use.
 */
export function removeCopies(files: Files, folder: AgentFolder, fileNames: ReadonlySet<string>): void {
  const active = new Set([...fileNames].map(transcriptNameOf));
  for (const place of [folder.torn, folder.repaired]) removeNamed(files, place, active);
  removeNamed(files, folder.own, active, (name) => name.endsWith(temporaryEnd));
  for (const name of active) files.remove(folder.temporary(name.slice(0, -".jsonl".length)));
  // Also of what was removed before and not flushed: a power cut would bring back what had to go.
  for (const place of [folder.torn, folder.repaired, folder.own])
    if (files.facts(place) !== null) flushFolder(files, place);
}

/** The name a transcript had before anything was put behind `.jsonl`. */
export function transcriptNameOf(fileName: string): string {
  const at = fileName.indexOf(".jsonl.");
  return at === -1 ? fileName : fileName.slice(0, at + ".jsonl".length);
}

/** Deletes the files that are called so, or so and something behind a dot. Looks at each name in the folder once. */
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

/** The name, and what stands before each of its dots. */
function beginnings(name: string): readonly string[] {
  return [name, ...[...name.matchAll(/\./g)].map(({ index }) => name.slice(0, index))];
}

/** A copy that nobody finished in this time is left over. */
const copyLifeMs = 86_400_000;

/** Removes copies in the making whose process died: their names say since when they are made. */
export function removeAbandoned(files: Files, folder: string, nowMs: number): void {
  withFileErrors(folder, () => {
    // Whoever needs room may have removed what was set aside, with the folder.
    files.makeFolder(folder);
    for (const name of files.names(folder)) {
      const behind = name.slice(transcriptNameOf(name).length);
      const madeMs = Number(/\.(?:fork|tmp)-(\d+)-/.exec(behind)?.[1] ?? Number.NaN);
      if (nowMs - madeMs > copyLifeMs) files.remove(`${folder}/${name}`);
    }
  });
}
