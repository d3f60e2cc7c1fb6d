import type { AgentFolder } from "./agent-folder.ts";
import type { Files } from "./files.ts";

/**
 * Deletes a transcript, its archived forms and every copy the store made of it. What was torn off the entries log goes
 * too, for nobody can tell whose entry it holds. Under the locks of the session and of the entries.
 */
export function removeTranscript(files: Files, folder: AgentFolder, fileName: string): void {
  removeNamed(files, folder.sessions, fileName);
  removeCopies(files, folder, fileName);
  removeNamed(files, folder.torn, "entries.log");
}

/**
 * Deletes what the store made of a transcript beside it: tails that were torn off, forks that were not finished, repaired
 * copies with their reports, and what a process left that died while it wrote the file anew. Under the session's lock, so
 * that nobody uses them. Whoever makes one without it, as a fork or a repair, looks under the lock whether it is still of use.
 */
export function removeCopies(files: Files, folder: AgentFolder, fileName: string): void {
  const active = fileName.replace(/(\.jsonl)\..*$/, "$1");
  for (const place of [folder.torn, folder.repaired]) removeNamed(files, place, active);
  const base = active.slice(0, -".jsonl".length);
  for (const name of new Set([fileName, active, base])) files.remove(folder.temporary(name));
}

function removeNamed(files: Files, folder: string, fileName: string): void {
  if (files.facts(folder) === null) return;
  for (const name of files.names(folder))
    if (name === fileName || name.startsWith(`${fileName}.`)) files.remove(`${folder}/${name}`);
}
