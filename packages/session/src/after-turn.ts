import type { TokenCounter } from "@throughline/tokens/internal";
import type { Turn } from "./turn.ts";
import type { Emit } from "./session-event.ts";
import { readLearning } from "./session-learning.ts";
import type { TurnHost } from "./turn-host.ts";
import type { TurnSettings } from "./turn-settings.ts";
import { readWindowRecords } from "./window-records.ts";

export interface AfterTurnContext {
  readonly host: TurnHost;
  readonly settings: TurnSettings;
  readonly turn: Turn;
  readonly counter: TokenCounter;
  readonly emit: Emit | null;
}

/**
 * Runs the `after-turn` steps in the background. They append side records only, which belong to no branch, so they
 * cannot conflict with the next turn.
 */
export async function runAfterTurnSteps({ host, settings, turn, counter, emit }: AfterTurnContext): Promise<void> {
  const { log, closing: sessionClosing } = host;
  for (const step of settings.steps) {
    if (step.when !== "after-turn" || sessionClosing.aborted) continue;
    emit?.({ name: "step.started", step: step.name });
    try {
      await step.run({
        ref: log.ref,
        sessionId: log.sessionId,
        turnId: turn.turnId,
        entry: log.entry,
        model: settings.model,
        gauge: turn.gauge,
        signal: sessionClosing,
        // A closed turn has no turn request for direct appends to the store.
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
      // The turn is closed, so a failed step cannot fail it. The error becomes an event.
      emit?.({ name: "step.failed", step: step.name, cause });
    }
  }
}
