import type { ReplayTurn } from "@throughline/history/internal";

/**
 * These calls have no result, and a compaction keeps them. The results of calls at the end may still follow the
 * compaction, and those of earlier calls if the branch has them.
 */
export function openCalls(
  turns: readonly ReplayTurn[],
  keptIds: ReadonlySet<string>,
  isAnsweredLater: (callId: string) => boolean,
): ReadonlySet<string> {
  const open = new Set<string>();
  if (keptIds.size === 0) return open;
  for (const [at, turn] of turns.entries()) {
    const reply = turns[at - 1];
    const isKept = reply?.role === "assistant" && reply.recordId !== null && keptIds.has(reply.recordId);
    if (turn.role !== "user" || !isKept) continue;
    const isEnd = at === turns.length - 1 && turn.blocks.length === 0;
    for (const { recordId, callId } of turn.results)
      if (recordId === null && (isEnd || isAnsweredLater(callId))) open.add(callId);
  }
  return open;
}
