import type { TokenCounter } from "@throughline/tokens/internal";
import type { Turn } from "./turn.ts";
import type { Emit } from "./session-event.ts";
import { readLearning } from "./session-learning.ts";
import type { TurnHost } from "./turn-host.ts";
import type { TurnSettings } from "./turn-settings.ts";
import { readWindowRecords } from "./window-records.ts";

export interface AfterTurnContext {
  readonly handle: TurnHost;
  readonly settings: TurnSettings;
  readonly turn: Turn;
  readonly counter: TokenCounter;
  readonly emit: Emit | null;
}

/**
 * Runs background steps after a turn is closed. Their records are side records beside the branch, so they conflict with
 * no turn.
 */
export async function afterTurn({ handle, settings, turn, counter, emit }: AfterTurnContext): Promise<void> {
  const { log, closing } = handle;
  for (const step of settings.steps) {
    if (step.when !== "after-turn" || closing.aborted) continue;
    emit?.({ name: "step.started", step: step.name });
    try {
      await step.run({
        ref: log.ref,
        sessionId: log.sessionId,
        turnId: turn.turnId,
        entry: log.entry,
        model: settings.model,
        gauge: turn.gauge,
        signal: closing,
        turn: null,
        counter,
        calibration: readLearning(log.entry).calibration,
        refresh: () => log.catchUp(),
        records: () => readWindowRecords(log),
        append: async (drafts, options = {}) => {
          await log.append(drafts, options);
        },
      });
      emit?.({ name: "step.finished", step: step.name });
    } catch (cause) {
      emit?.({ name: "step.failed", step: step.name, cause });
    }
  }
}
