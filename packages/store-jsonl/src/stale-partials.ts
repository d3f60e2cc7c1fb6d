import { createFinding, quote } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import { unlessUndecodable } from "./undecodable-entry.ts";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { PartialFile } from "./partial-files.ts";
import type { StoreContext } from "./store-context.ts";

/**
 * Removes the partials of purged or archived sessions, which programs without partials leave behind. It takes a lock
 * only if there are any.
 */
export async function removeOrphanedPartials(
  context: StoreContext,
  agent: AgentSessionFiles,
  signal: AbortSignal,
): Promise<void> {
  if (orphanedPartials(agent).length === 0) return;
  const remove = (): void => {
    agent.log.refreshHeld();
    const orphans = orphanedPartials(agent);
    if (orphans.length === 0) return;
    // A power cut could undo the log line, and the session would then lack its open reply.
    agent.log.flushNow();
    for (const { sessionId } of orphans) agent.partials.remove(sessionId, { isFlushed: true });
  };
  await context.locks.hold([agent.folder.entriesLock], remove, { signal });
}

/** Removes every partial whose session or turn is gone. @yields a finding for each file */
export async function* repairPartials(context: StoreContext, agent: AgentSessionFiles): AsyncGenerator<Finding> {
  for (const { file, finding } of stalePartials(agent)) {
    const { sessionId, fence } = file;
    const paths = [agent.folder.entriesLock, agent.folder.sessionLock(sessionId)];
    const isRemoved = await context.locks.hold(paths, () => {
      agent.log.refreshHeld();
      const isStale = staleBecause(agent, file) !== null;
      if (isStale) agent.log.flushNow();
      if (isStale) agent.partials.remove(sessionId, { toFence: fence, isFlushed: true });
      return isStale;
    });
    if (isRemoved) yield { ...finding, repaired: true };
  }
}

export function* stalePartials(
  agent: AgentSessionFiles,
): Generator<{ readonly file: PartialFile; readonly finding: Finding }> {
  // The files are listed before the log is read, because a session is created before its partial.
  const files = agent.partials.owners();
  if (files.length > 0) agent.log.refresh();
  for (const file of files) {
    const reason = staleBecause(agent, file);
    if (reason === null) continue;
    const path = `${agent.folder.partials}/${file.name}`;
    const key = agent.log.row(file.sessionId)?.key ?? null;
    const finding = createFinding("PARTIAL_STALE", `The partial reply belongs to no open turn: ${reason}.`, {
      path,
      key,
    });
    yield { file, finding };
  }
}

function orphanedPartials(agent: AgentSessionFiles): readonly PartialFile[] {
  const files = agent.partials.owners();
  if (files.length > 0) agent.log.refresh();
  return files.filter(({ sessionId }) => agent.log.row(sessionId)?.isArchived !== false);
}

function staleBecause(agent: AgentSessionFiles, { sessionId, fence }: PartialFile): string | null {
  const row = agent.log.row(sessionId);
  if (row === null) return `there is no session ${quote(sessionId)}`;
  if (row.isArchived) return `session ${quote(sessionId)} is archived`;
  const head = unlessUndecodable(
    () => agent.open(row)?.transcript.head,
    () => undefined,
  );
  // Without the transcript the state of the turn is unknown, so the partial stays.
  if (head === undefined) return null;
  if (head.turn === null) return "the session has no open turn";
  // A higher fence may belong to a turn that was opened after the transcript was read.
  return fence < head.fence ? `the turn of fence ${head.fence} is open` : null;
}
