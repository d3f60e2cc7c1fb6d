import { loadExisting } from "@throughline/core";
import type { TurnStep } from "../session-options.ts";
import type { WholeTurnParts } from "./whole-turn-parts.ts";

/** Begins a checkpoint after a turn when one is due, and waits for nothing: the next turn may begin at once. */
export function checkpointStep({ checkpointer, store }: WholeTurnParts): TurnStep {
  return {
    name: "checkpoint",
    when: "after-turn",
    async run({ ref, gauge }) {
      const { entry } = await loadExisting(store, ref);
      checkpointer.afterTurn(ref, entry, { tokens: gauge.tokens, windowTokens: gauge.windowTokens });
    },
  };
}
