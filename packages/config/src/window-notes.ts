import type { ConfigNote } from "./config-note.ts";
import type { Config } from "./resolve-config.ts";
import { SettingSet } from "./setting-set.ts";

/**
 * What a model's window leaves of a configuration, for whoever learns the window after the settings were read.
 * @throws {ThroughlineError} CONFIG_INVALID
 */
export async function windowNotes({ settings }: Config, windowTokens: number | null): Promise<readonly ConfigNote[]> {
  const { checkWindow } = await import("./check-window.ts");
  return checkWindow(new SettingSet(settings), windowTokens);
}
