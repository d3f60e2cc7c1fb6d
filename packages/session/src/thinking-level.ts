import { thinkingLevels } from "@throughline/core/internal";
import type { Emit } from "./session-event.ts";
import type { SessionLog } from "./session-log.ts";
import type { SessionModel } from "./session-options.ts";

export function withThinkingLevel(model: SessionModel, log: SessionLog, emit: Emit | null): SessionModel {
  const thinkingLevel = thinkingLevelOf(model, log, emit);
  return thinkingLevel === undefined ? model : { ...model, thinkingLevel };
}

/**
 * Determines the thinking level: that of the caller, else that of the entry, else that of the newest record. Undefined
 * when none is set. A level of the session counts only for the model it was set for. Another model may not support
 * thinking and would refuse every call. An invalid level is reported and ignored for the same reason.
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
    // The entry of another program may hold any value here.
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
