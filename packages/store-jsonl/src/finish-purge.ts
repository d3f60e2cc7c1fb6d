import { flushFolder } from "./file-work.ts";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";

/** What comes after the commit of a purge, also of one that another process did not live to finish. Under the same locks. */
export function finishPurge(
  { context, agent }: { readonly context: StoreContext; readonly agent: AgentSessionFiles },
  removed: readonly string[],
  rows: readonly SessionRow[] = [],
): void {
  const names = new Set(removed.map((name) => `${name}.jsonl`));
  for (const row of rows)
    names
      .add(row.fileName)
      .add(row.formerFileName ?? row.fileName)
      .add(activeFileName(row));
  for (const sessionId of removed) {
    agent.partials.remove(sessionId, { isFlushed: true });
    agent.forget(sessionId);
  }
  agent.removeBytes(names);
  flushFolder(context.files, agent.folder.sessions);
  // Those of others that were cut off, and are not finished here, stay purges.
  agent.log.rewrite([...agent.log.removed].filter((name) => !removed.includes(name)));
  agent.index.scrub(agent.updateIndex([]));
  flushFolder(context.files, agent.folder.own);
}

export function activeFileName({ fileName }: SessionRow): string {
  const at = fileName.search(/\.jsonl\.(?:reset|deleted)\./);
  return at === -1 ? fileName : fileName.slice(0, at + ".jsonl".length);
}
