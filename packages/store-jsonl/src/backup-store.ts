import { resolve } from "node:path";
import { setImmediate as pause } from "node:timers/promises";
import { quote, refused } from "@throughline/core/store";
import type { AgentSessions } from "./agent-sessions.ts";
import {
  afterCommit,
  appendAll,
  fileError,
  flushFolder,
  folderOf,
  makeFolders,
  openIfThere,
  readRange,
  withFileErrors,
} from "./file-work.ts";
import type { Files } from "./files.ts";
import type { MaintenanceScene } from "./maintenance-scene.ts";

const chunkBytes = 1024 * 1024;

/**
 * Copies a store into a new folder that can be opened as one. The entries go first: whatever is appended meanwhile is in
 * the transcripts, and those say themselves what the entries do not know yet. What was set aside, locks and everything
 * derived stay behind. The folder is called `<path>.part-<random>` until all of it is on the disk; one of that name is
 * what a process left that died.
 * @throws {ThroughlineError} INPUT_INVALID when there is something at the path; STORE_FULL, STORE_IO, ABORTED
 */
export async function backupStore(
  { context, agents, begin }: MaintenanceScene,
  path: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly sizeBytes: number }> {
  const { files, root, random } = context;
  const target = resolve(path);
  if (withFileErrors(target, () => files.facts(target)) !== null)
    throw refused("INPUT_INVALID", `There is something at ${quote(target)} already.`, { path: target });
  const part = `${target}.part-${random.uint32().toString(36)}`;
  const copied: string[] = [];
  let sizeBytes = 0;
  const copy = async (from: string, to: string): Promise<boolean> => {
    begin(signal);
    const target = `${part}${to.slice(root.length)}`;
    copied.push(target);
    const bytes = await copyFile(files, from, target, () => begin(signal));
    sizeBytes += bytes ?? 0;
    return bytes !== null;
  };
  makeFolders(files, part);
  try {
    for (const agent of agents()) {
      const folders = [agent.folder.sessions, agent.folder.own].map((one) => `${part}${one.slice(root.length)}`);
      for (const folder of folders) makeFolders(files, folder);
      await copyAgent(files, agent, copy);
      for (const folder of folders) flushFolder(files, folder);
    }
    withFileErrors(target, () => files.rename(part, target));
  } catch (error) {
    // What is missing may be room.
    for (const each of copied) files.remove(each);
    throw fileError(error, target);
  }
  afterCommit(target, () => flushFolder(files, folderOf(target)));
  return { sizeBytes };
}

/** `copy`: false when the file is not there. */
async function copyAgent(
  files: Files,
  agent: AgentSessions,
  copy: (from: string, to: string) => Promise<boolean>,
): Promise<void> {
  const { folder } = agent;
  const before = transcriptNames(files, agent);
  for (const path of [folder.entriesLog, folder.sessionsJson, folder.viewBase]) await copy(path, path);
  for (const name of new Set([...before, ...transcriptNames(files, agent)])) {
    // Archived or restored meanwhile it is copied under the name by which the entries know it.
    for (let from: string | null = name; from !== null && !(await copy(folder.session(from), folder.session(name)));)
      from = presentName(agent, name, from);
  }
}

/** What a transcript is called by now that had a name, and is not called so any more as it was last; null when it is gone. */
function presentName(agent: AgentSessions, name: string, last: string): string | null {
  agent.log.refresh();
  const row = agent.log
    .all()
    .values()
    .find(({ fileName, formerFileName }) => fileName === name || formerFileName === name);
  const present = row === undefined ? null : agent.fileNameOf(row);
  return present === last ? null : present;
}

function transcriptNames(files: Files, { folder }: AgentSessions): readonly string[] {
  if (files.facts(folder.sessions) === null) return [];
  return files
    .names(folder.sessions)
    .filter((name) => name.includes(".jsonl") && !name.endsWith(".lock"))
    .filter((name) => files.facts(folder.session(name))?.kind === "file");
}

/** As long as the file was when it was opened. How many bytes that is; null when it is gone by now. `goOn`: as `SurveyTarget`. */
async function copyFile(files: Files, from: string, to: string, goOn: () => void): Promise<number | null> {
  const source = openIfThere(files, from);
  if (source === null) return null;
  try {
    const target = withFileErrors(to, () => files.open(to, "create"));
    try {
      const { sizeBytes } = withFileErrors(from, () => files.factsOf(source));
      for (let position = 0; position < sizeBytes;) {
        const bytes = withFileErrors(from, () =>
          readRange(files, source, position, Math.min(position + chunkBytes, sizeBytes)),
        );
        if (bytes.length === 0) break;
        appendAll(files, target, bytes, position, to);
        position += bytes.length;
        await pause();
        goOn();
      }
      await files.flush(target);
      return sizeBytes;
    } finally {
      files.close(target);
    }
  } finally {
    files.close(source);
  }
}
