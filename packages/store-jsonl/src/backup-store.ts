import { setImmediate as pause } from "node:timers/promises";
import { quote, refused } from "@throughline/core/store";
import type { AgentSessions } from "./agent-sessions.ts";
import { appendAll, flushFolder, openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import type { MaintenanceScene } from "./maintenance.ts";

const chunkBytes = 1024 * 1024;

/**
 * Copies a store into a new folder that can be opened as one. The entries go first: whatever is appended meanwhile is in
 * the transcripts, and those say themselves what the entries do not know yet. What was set aside, locks and everything
 * derived stay behind.
 * @throws {ThroughlineError} INPUT_INVALID when there is something at the path
 */
export async function backupStore(
  { context, agents, begin }: MaintenanceScene,
  path: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly sizeBytes: number }> {
  const { files, root } = context;
  if (withFileErrors(path, () => files.facts(path)) !== null)
    throw refused("INPUT_INVALID", `There is something at ${quote(path)} already.`, { path });
  let sizeBytes = 0;
  for (const agent of agents()) {
    const copyOf = (original: string): string => `${path}${original.slice(root.length)}`;
    for (const folder of [agent.folder.sessions, agent.folder.own]) makeFolders(files, copyOf(folder));
    sizeBytes += await copyFile(files, agent.folder.entriesLog, copyOf(agent.folder.entriesLog));
    sizeBytes += await copyFile(files, agent.folder.sessionsJson, copyOf(agent.folder.sessionsJson));
    sizeBytes += await copyFile(files, agent.folder.viewBase, copyOf(agent.folder.viewBase));
    for (const name of transcriptNames(files, agent)) {
      begin(signal);
      const original = agent.folder.session(name);
      sizeBytes += await copyFile(files, original, copyOf(original));
    }
    for (const folder of [agent.folder.sessions, agent.folder.own]) flushFolder(files, copyOf(folder));
  }
  return { sizeBytes };
}

function transcriptNames(files: Files, { folder }: AgentSessions): readonly string[] {
  if (files.facts(folder.sessions) === null) return [];
  return files
    .names(folder.sessions)
    .filter((name) => name.includes(".jsonl") && !name.endsWith(".lock"))
    .filter((name) => files.facts(folder.session(name))?.kind === "file");
}

/** As long as the file was when it was opened. How many bytes that is; 0 when it is gone by now. */
async function copyFile(files: Files, from: string, to: string): Promise<number> {
  const source = openIfThere(files, from);
  if (source === null) return 0;
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
    }
    await files.flush(target);
    return sizeBytes;
  } finally {
    files.close(source);
    files.close(target);
  }
}

function makeFolders(files: Files, path: string): void {
  const parent = path.slice(0, path.lastIndexOf("/"));
  if (parent !== "" && files.facts(parent) === null) makeFolders(files, parent);
  withFileErrors(path, () => {
    files.makeFolder(path);
    flushFolder(files, parent === "" ? "/" : parent);
  });
}
