import type { Emit } from "./session-event.ts";
import type { SessionLog } from "./session-log.ts";

/** Levels that a provider takes, or that its adapter translates. */
const knownLevels: ReadonlySet<string> = new Set(["off", "minimal", "low", "medium", "high", "xhigh", "max"]);

/**
 * How long the model thinks in a turn: what the caller says, else what the entry says, else what the records last set;
 * undefined where nobody says anything. A word in the session that is no level is reported and passed over: sent, it
 * would be refused with every call.
 */
export function thinkingLevelOf(given: string | undefined, log: SessionLog, emit: Emit | null): string | undefined {
  if (given !== undefined) return given;
  const said = [
    { from: "entry", level: log.entry.thinkingLevel },
    { from: "records", level: log.recordedThinkingLevel },
  ] as const;
  for (const { from, level } of said) {
    // Another program's entry may hold anything there.
    if (typeof level !== "string" || level === "") continue;
    if (knownLevels.has(level)) return level;
    emit?.({
      name: "thinking.unknown",
      level: level.slice(0, 100).toWellFormed(),
      from,
      known: [...knownLevels].join(", "),
    });
  }
  return undefined;
}
