import { loadExisting } from "@throughline/core/internal";
import type { StepContext, TurnStep } from "../session-options.ts";
import type { WholeTurnParts } from "./whole-turn-parts.ts";

/** Begins a due checkpoint after a turn. The step does not wait for it, so that the next turn may begin at once. */
export function checkpointStep({ checkpointer, store, topicChanged: detect }: WholeTurnParts): TurnStep {
  return {
    name: "checkpoint",
    when: "after-turn",
    async run({ ref, sessionId, turnId, entry: entryBefore, gauge, signal, records }: StepContext) {
      let topicChanged = false;
      try {
        if (detect !== null) topicChanged = await detect({ ref, sessionId, turnId, gauge, signal, records });
      } finally {
        // A failed topic detection is reported by the step. It must not prevent a checkpoint that is due by size.
        const { entry } = await loadExisting(store, ref);
        const { windowTokens } = gauge;
        // A summary that was begun beside the turn may have been applied since, and the gauge counts what it replaced.
        const tokens = entry.compactionCount === entryBefore.compactionCount ? gauge.tokens : null;
        checkpointer.afterTurn(ref, entry, { tokens, windowTokens, topicChanged });
      }
    },
  };
}
