import type { Setting } from "./setting-set.ts";

/** Returns the value of a setting, or null without one. */
export function settingOf(settings: readonly Setting[], key: string): Setting["value"] {
  return settings.find((setting) => setting.key === key)?.value ?? null;
}
