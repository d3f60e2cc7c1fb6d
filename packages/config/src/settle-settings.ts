import { checkCombinations } from "./check-combinations.ts";
import { checkWindow } from "./check-window.ts";
import type { ConfigNote } from "./config-note.ts";
import type { SettingSet } from "./setting-set.ts";

/**
 * Runs last: sets the values that follow from other settings, and refuses combinations that contradict each other.
 * @throws {ThroughlineError} CONFIG_INVALID
 */
export function settleSettings(settings: SettingSet): readonly ConfigNote[] {
  settleSummaries(settings);
  const windowTokens = settings.number("windowTokens");
  return [...checkCombinations(settings), ...checkWindow(settings, windowTokens > 0 ? windowTokens : null)];
}

/** A user who configures an Ollama server for summaries wants the server to write them, and checkpoints as well. */
function settleSummaries(settings: SettingSet): void {
  const block = ["url", "model", "timeoutSeconds", "contextTokens"].map((name) => `session.compaction.ollama.${name}`);
  const named = block.find((key) => settings.isGiven(key));
  if (named === undefined) return;
  if (!settings.isSet("session.compaction.summaryModels")) {
    settings.fill("session.compaction.summaryModels", ["ollama"], named);
  }
  if (!settings.isSet("session.checkpoint.model")) settings.fill("session.checkpoint.model", "ollama", named);
}
