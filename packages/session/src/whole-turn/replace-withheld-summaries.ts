import { createSummaryRetry, tokenMeasure } from "@throughline/compaction/internal";
import type { Clock, RecordIds, SessionStore, Summarizer } from "@throughline/core";
import { tellListener } from "@throughline/core/internal";
import type { StepContext } from "../session-options.ts";
import type { TurnMemory } from "./turn-memory.ts";
import type { WholeTurnListener } from "./whole-turn-event.ts";

export interface ReplaceWithheldOptions {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly ids: RecordIds;
  readonly memory: TurnMemory;
  /** When this is null, the note about withheld content stays until a model writes a better summary. */
  readonly extractive: Summarizer | null;
  readonly listener: WholeTurnListener | null;
}

/**
 * After a redaction of a summarized record, the next call begins with an extractive summary of the rest. No model is
 * asked here, because a model rewrites the summary in the background.
 */
export function replaceWithheldSummaries(options: ReplaceWithheldOptions): (context: StepContext) => Promise<void> {
  const { store, clock, ids, memory, extractive, listener } = options;
  return async ({ ref, counter, calibration, signal, refresh }) => {
    if (!memory.takeOutdated(ref) || extractive === null) return;
    const retry = createSummaryRetry({
      store,
      clock,
      ids,
      summarizers: [extractive],
      measure: tokenMeasure(counter, calibration),
      stopgap: true,
      ...(listener === null ? {} : { onEvent: (event) => tellListener(listener, event) }),
    });
    const outcomes = await retry.run(ref, { scan: true, signal });
    if (outcomes.some(({ kind }) => kind === "improved")) await refresh();
  };
}
