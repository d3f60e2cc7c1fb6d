export { chatSettings } from "./chat-settings.ts";
export { cliSettings } from "./cli-settings.ts";
export { nearestKey } from "./nearest-key.ts";
export type { ConfigFile } from "./read-config-file.ts";
export { resolveSettings } from "./resolve-settings.ts";
export type { ResolveSettingsOptions, Setting, SettingSource } from "./resolve-settings.ts";
export { parseSettingText } from "./setting-definition.ts";
export type {
  EnvironmentVariable,
  SettingDefinition,
  SettingFragment,
  SettingKind,
  SettingScalar,
} from "./setting-definition.ts";
