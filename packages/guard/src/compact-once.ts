import type { CompactionRequest, CompactMessages, GuardTurn } from "./guard-options.ts";

/**
 * Compacts at most once in a turn. A compaction that changes nothing does not count, because the request is as large as
 * before.
 */
export async function compactOnce(
  compact: CompactMessages | null,
  turn: GuardTurn,
  request: CompactionRequest,
): ReturnType<CompactMessages> {
  if (compact === null || turn.compactions > 0) return null;
  turn.compactions += 1;
  const compacted = await compact(request);
  if (compacted === null) turn.compactions -= 1;
  return compacted;
}
