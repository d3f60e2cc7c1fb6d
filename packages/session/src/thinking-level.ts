import { thinkingLevels } from "@throughline/core/internal";
import type { Emit } from "./session-event.ts";
import type { SessionLog } from "./session-log.ts";
import type { SessionModel } from "./session-options.ts";

/** The model with the level that it thinks at in a turn. */
export function withThinkingLevel(model: SessionModel, log: SessionLog, emit: Emit | null): SessionModel {
  const thinkingLevel = thinkingLevelOf(model, log, emit);
  return thinkingLevel === undefined ? model : { ...model, thinkingLevel };
}

/**
 * How long the model thinks in a turn: what the caller says, else what the entry says, else what the records last set;
 * undefined where nobody says anything. What a session says counts for the model that it was talking to: another one may
 * not think at all, and would refuse every call. A word that is no level is reported and passed over for the same reason.
 */
function thinkingLevelOf(
  { thinkingLevel: given, modelId }: SessionModel,
  log: SessionLog,
  emit: Emit | null,
): string | undefined {
  if (given !== undefined) return given;
  const recorded = log.recordedThinking;
  const said = [
    { from: "entry", level: log.entry.thinkingLevel, heardBy: log.entry.model ?? modelId },
    { from: "records", level: recorded?.level, heardBy: recorded?.modelId ?? modelId },
  ] as const;
  for (const { from, level, heardBy } of said) {
    // Another program's entry may hold anything there.
    if (typeof level !== "string" || level === "" || heardBy !== modelId) continue;
    if (thinkingLevels.includes(level)) return level;
    emit?.({
      name: "thinking.unknown",
      level: level.slice(0, 100).toWellFormed(),
      from,
      known: thinkingLevels.join(", "),
    });
  }
  return undefined;
}
