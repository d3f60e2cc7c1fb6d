import type { CompactionRequest, CompactMessages, GuardTurn } from "./guard-options.ts";

/** Compacts unless this turn was compacted before. A port that found nothing to compact has used nothing up. */
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
