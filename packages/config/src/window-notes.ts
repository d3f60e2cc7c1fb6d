import type { ConfigNote } from "./config-note.ts";
import type { Config } from "./resolve-config.ts";
import { SettingSet } from "./setting-set.ts";

/**
 * Checks a configuration against a model's window and returns notes about the values that change. Callers use it when
 * they learn the window after the settings were read.
 * @throws {ThroughlineError} CONFIG_INVALID
 */
export async function windowNotes({ settings }: Config, windowTokens: number | null): Promise<readonly ConfigNote[]> {
  const { checkWindow } = await import("./check-window.ts");
  return checkWindow(new SettingSet(settings), windowTokens);
}
