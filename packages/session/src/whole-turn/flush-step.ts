import type { RecordDraft, SessionEntry } from "@throughline/core";
import { tellListener } from "@throughline/core/internal";
import {
  decideFlush,
  endFlush,
  type FlushDecision,
  type MemoryFlushSettings,
  readFlushState,
} from "@throughline/compaction/internal";
import type { StepContext, TurnStep } from "../session-options.ts";
import type { TurnNote } from "./turn-memory.ts";
import type { WholeTurnParts } from "./whole-turn-parts.ts";

/**
 * Asks the agent to store notes, at the thresholds and before a compaction. The question follows the user's message in
 * a call that is made anyway, and the compaction follows the answer. If the window has no room, the question goes into
 * the call that begins with the summary.
 */
export function flushStep(parts: WholeTurnParts, settings: MemoryFlushSettings): TurnStep {
  const repaired = new Set<number>();
  return {
    name: "memory-flush",
    when: "before-call",
    async run(context) {
      parts.memory.turn(context.ref, context.turnId).isAsked = false;
      const { repairs } = await askFlush(parts, settings, context, false);
      const windowTokens = context.gauge.windowTokens ?? 0;
      if (repairs.length === 0 || repaired.has(windowTokens)) return;
      repaired.add(windowTokens);
      tellListener(parts.listener, { name: "flush.repaired", ref: context.ref, repairs });
    },
  };
}

/** Asks when a flush is due. `isOverflow` means that a compaction follows, whatever the estimate is. */
export async function askFlush(
  parts: WholeTurnParts,
  settings: MemoryFlushSettings,
  context: StepContext,
  isOverflow: boolean,
): Promise<FlushDecision> {
  const { ref, turnId, gauge } = context;
  const { tokens, windowTokens } = gauge;
  const note = parts.memory.turn(ref, turnId);
  const entry = entryNow(context, note, parts);
  const { due, triggerTokens: compactAtTokens } = parts.compactor.need({ tokens, windowTokens, messages: 0 });
  const isCompactionNext = isOverflow || (due && !note.hasCompacted);
  const sizes = { tokens, windowTokens, compactAtTokens, isCompactionNext };
  const decision = decideFlush({ entry, ...sizes, nowMs: parts.clock.nowMs() }, settings);
  const { message, fired, why, patch } = decision;
  if (message === null || fired === null || why === null) {
    // A crossed threshold without a message is recorded when the turn ends.
    if (hasChanged(entry, decision)) note.patch = { ...note.patch, ...patch };
    return decision;
  }
  await context.append([message], { entry: { ...note.patch, ...patch } });
  note.patch = {};
  note.isAsked = true;
  note.wasAsked = true;
  const { askedPercent } = fired;
  tellListener(parts.listener, {
    name: "flush.asked",
    ref,
    turnId,
    askedPercent,
    why: isCompactionNext ? "before-compaction" : why,
  });
  return decision;
}

/** Decides under the assumption that a compaction follows. */
export function isFlushDue(parts: WholeTurnParts, settings: MemoryFlushSettings, context: StepContext): boolean {
  const { tokens, windowTokens } = context.gauge;
  const entry = { ...context.entry, ...parts.memory.turn(context.ref, context.turnId).patch };
  const { triggerTokens: compactAtTokens } = parts.compactor.need({ tokens, windowTokens, messages: 0 });
  const sizes = { tokens, windowTokens, compactAtTokens, isCompactionNext: true };
  return decideFlush({ entry, ...sizes, nowMs: parts.clock.nowMs() }, settings).message !== null;
}

/**
 * Adds the fields that this turn will write to the entry. If an earlier turn was asked and never ended, the agent
 * counts as not asked.
 */
function entryNow({ entry, ref }: StepContext, note: TurnNote, { listener }: WholeTurnParts): SessionEntry {
  const now = { ...entry, ...note.patch };
  if (note.wasAsked || readFlushState(now).phase !== "asked") return now;
  const ended = endFlush(now, { calls: [], failed: true });
  if (ended === null) return now;
  note.patch = { ...note.patch, ...ended.patch };
  tellListener(listener, { name: "flush.failed", ref });
  return { ...now, ...ended.patch };
}

function hasChanged(entry: SessionEntry, { state }: FlushDecision): boolean {
  return JSON.stringify(readFlushState(entry)) !== JSON.stringify(state);
}

/** Asks the user's question again, after an answer that was for the flush alone. */
export function reminderDraft(nowMs: number): RecordDraft {
  const content = "[SYSTEM: memory flush]\nThe memory flush is over. Now answer the user's last message.";
  return { type: "message", message: { role: "user", content, source: "flush", timestamp: nowMs } };
}
