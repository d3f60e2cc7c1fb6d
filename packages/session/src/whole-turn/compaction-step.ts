import { settingsForWindow } from "@throughline/compaction/internal";
import { hasErrorCode } from "@throughline/core";
import { tellListener } from "@throughline/core/internal";
import type { CompactSession, StepContext, TurnStep } from "../session-options.ts";
import type { BackgroundCompactions } from "./background-compactions.ts";
import { askFlush, isFlushDue } from "./flush-step.ts";
import type { WholeTurnParts } from "./whole-turn-parts.ts";

/**
 * Compacts before a call when a compaction is due; the next call begins with the summary. A need is met once. A turn
 * that is still too large afterwards is compacted again only after its context was smaller in between.
 */
export function compactionStep(parts: WholeTurnParts): TurnStep {
  const { memory, compactor, background } = parts;
  const told = new Set<number>();
  return {
    name: "compaction",
    when: "before-call",
    async run(context) {
      const { ref, turnId, gauge } = context;
      const note = memory.turn(ref, turnId);
      const { tokens, windowTokens } = gauge;
      await parts.replaceWithheldSummaries(context);
      tellRepairs(parts, context, told);
      const messages = windowTokens === null ? await countMessages(context) : 0;
      if (!compactor.need({ tokens, windowTokens, messages }).due) {
        note.hasCompacted = false;
        if (background !== null && !note.isAsked) await beside(parts, background, context);
        return;
      }
      // If the agent was asked to store notes, it answers before the compaction.
      if (!note.isAsked && !note.hasCompacted) {
        await compactNow(parts, context, { totalTokens: tokens, targetTokens: null });
      }
    },
  };
}

/** A reserve under its floor, or too large for the window, is replaced. An event reports it once for each window. */
function tellRepairs({ compaction, listener }: WholeTurnParts, { ref, gauge }: StepContext, told: Set<number>): void {
  const windowTokens = gauge.windowTokens ?? 0;
  if (told.has(windowTokens)) return;
  told.add(windowTokens);
  const { repairs } = settingsForWindow(compaction, windowTokens);
  if (repairs.length > 0) tellListener(listener, { name: "compaction.repaired", ref, repairs });
}

/**
 * Applies a background summary, or begins one. It begins only when no flush is due, because the agent must be asked
 * first.
 */
async function beside(parts: WholeTurnParts, background: BackgroundCompactions, context: StepContext): Promise<void> {
  if (await background.swap(context)) return;
  const { flush, memory } = parts;
  if (flush !== null && isFlushDue(parts, flush, context)) return;
  const note = memory.turn(context.ref, context.turnId);
  note.patch = { ...note.patch, ...background.begin(context) };
}

/**
 * Compacts when a request turned out not to fit. A flush that is still open is asked in the request after the
 * compaction.
 */
export function compactInFlight(parts: WholeTurnParts): CompactSession {
  const { memory, flush } = parts;
  return async (context) => {
    const note = memory.turn(context.ref, context.turnId);
    if (note.hasCompacted) return false;
    if (flush !== null && !note.isAsked) await askFlush(parts, flush, context, true);
    const { gauge, observedTokens, targetTokens } = context;
    return compactNow(parts, context, { totalTokens: observedTokens ?? gauge.tokens, targetTokens });
  };
}

interface Sizes {
  readonly totalTokens: number;
  readonly targetTokens: number | null;
}

/**
 * Returns true when a summary was written. An aborted turn ends anyway, so the abort is no error here. An error of the
 * store ends the turn.
 */
async function compactNow({ memory, compactor }: WholeTurnParts, context: StepContext, sizes: Sizes): Promise<boolean> {
  const { ref, turnId, counter, calibration, gauge, signal, turn, refresh } = context;
  memory.turn(ref, turnId).hasCompacted = true;
  const { windowTokens } = gauge;
  const within = turn === null ? {} : { turn };
  try {
    const result = await compactor.compact(ref, { counter, calibration, windowTokens, ...sizes, signal, ...within });
    if (result.kind === "nothing") return false;
    await refresh();
    return true;
  } catch (error) {
    if (signal.aborted && hasErrorCode(error, "ABORTED")) return false;
    throw error;
  }
}

async function countMessages({ records }: StepContext): Promise<number> {
  return (await records()).filter(({ type, side }) => type === "message" && !side).length;
}
