import type { SessionStore } from "@throughline/core";
import type { CommandContext } from "./command.ts";

/** Describes a file of an agent that no record refers to, and what became of it. */
export interface UnusedFile {
  readonly agentId: string;
  readonly fileId: string;
  readonly bytes: number;
  readonly storedAtMs: number;
  /** `skipped`: it was put again, or deleted, since the plan was made. */
  readonly state: "planned" | "done" | "skipped";
}

/** Finds the files of agents that no record refers to and that were put longer ago than `olderThanMs`. */
export async function findUnusedFiles(
  { scope, signal }: CommandContext,
  { files }: SessionStore,
  agentIds: Iterable<string>,
  { olderThanMs, nowMs }: { readonly olderThanMs: number; readonly nowMs: number },
): Promise<readonly UnusedFile[]> {
  const unused: UnusedFile[] = [];
  if (files === undefined) return unused;
  for (const agentId of new Set(agentIds))
    for await (const page of files.list({ namespace: scope.namespace, agentId }, { signal }))
      for (const { id, bytes, storedAtMs, references } of page)
        if (bytes !== null && storedAtMs !== null && references === 0 && nowMs - storedAtMs > olderThanMs)
          unused.push({ agentId, fileId: id, bytes, storedAtMs, state: "planned" });
  return unused;
}

/** Deletes the planned files, except those that were put again since. */
export async function deleteUnusedFiles(
  { scope, output }: CommandContext,
  { files }: SessionStore,
  planned: readonly UnusedFile[],
): Promise<readonly UnusedFile[]> {
  const done: UnusedFile[] = [];
  for (const file of planned) {
    const place = { namespace: scope.namespace, agentId: file.agentId };
    output.progress(`delete ${file.fileId}`);
    const isSame = (await files?.stat(place, file.fileId))?.storedAtMs === file.storedAtMs;
    const isDeleted = isSame && (await files?.delete(place, file.fileId)) === true;
    done.push({ ...file, state: isDeleted ? "done" : "skipped" });
  }
  output.clearProgress();
  return done;
}
