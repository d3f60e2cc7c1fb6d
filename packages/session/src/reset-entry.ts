import type { SessionEntry } from "@throughline/core";

/** What belongs to the conversation that ends; everything else is about whom it is with, and stays. */
const ended: ReadonlySet<string> = new Set([
  "sessionId",
  "sessionFile",
  "updatedAt",
  "previousSessionIds",
  "forkedFrom",
  "inputTokens",
  "outputTokens",
  "totalTokens",
  "totalTokensFresh",
  "contextTokens",
  "compactionCount",
  "memoryFlushAt",
  "memoryFlushCompactionCount",
  "systemSent",
  "abortedLastRun",
  "sdkSessionId",
  "cliSessionIds",
  "claudeCliSessionId",
  "skillsSnapshot",
  "systemPromptReport",
]);

/** What a new session under the key keeps. What was learned of the model holds in every session. */
export function resetEntry(entry: SessionEntry): Readonly<Record<string, unknown>> {
  const kept = Object.fromEntries(Object.entries(entry).filter(([field]) => !ended.has(field)));
  const own = kept["throughline"];
  if (typeof own !== "object" || own === null) return kept;
  const { spend: _spend, thresholds: _thresholds, ...learned } = own as Readonly<Record<string, unknown>>;
  return { ...kept, throughline: learned };
}
