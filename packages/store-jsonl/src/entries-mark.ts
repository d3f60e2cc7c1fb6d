import type { AgentSessionFiles } from "./agent-session-files.ts";
import { ageMsOf, timeGrainMs } from "./file-work.ts";
import type { StoreContext } from "./store-context.ts";

/**
 * Returns a text that differs whenever an entry of the agent may have changed. It contains the facts of the entries
 * log, of sessions.json and of the transcripts' folder. It is null while a transcript may contain an entry patch. It is
 * also null right after a change of a file, when another change would not show in its time.
 */
export function entriesMark({ files }: StoreContext, { exists, folder, index }: AgentSessionFiles): string | null {
  if (!exists) return null;
  index.look();
  if (index.suspects()?.length !== 0) return null;
  const log = files.facts(folder.entriesLog);
  const others = [files.facts(folder.sessionsJson), files.facts(folder.sessions)];
  // The log's size or identity shows every change. The other two may be overwritten in place.
  if (others.some((facts) => facts !== null && ageMsOf(facts) <= timeGrainMs)) return null;
  return JSON.stringify(
    [log, ...others].map((facts) => facts && [facts.identity, facts.sizeBytes, String(facts.modifiedNs)]),
  );
}
