import type { AgentSessionFiles } from "./agent-session-files.ts";
import { ageMsOf, timeGrainMs } from "./file-work.ts";
import type { StoreContext } from "./store-context.ts";

/**
 * Another text whenever an entry of the agent may have changed: what the entries log, sessions.json and the folder of the
 * transcripts are. Null while a change of an entry may lie in a transcript, or where a file changed so lately that another
 * change of it might not show.
 */
export function entriesMark({ files }: StoreContext, { exists, folder, index }: AgentSessionFiles): string | null {
  if (!exists) return null;
  index.look();
  if (index.suspects()?.length !== 0) return null;
  const log = files.facts(folder.entriesLog);
  const others = [files.facts(folder.sessionsJson), files.facts(folder.sessions)];
  // The log grows or is another file; the others may be written in their place.
  if (others.some((facts) => facts !== null && ageMsOf(facts) <= timeGrainMs)) return null;
  return JSON.stringify(
    [log, ...others].map((facts) => facts && [facts.identity, facts.sizeBytes, String(facts.modifiedNs)]),
  );
}
