// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export { chatSettings } from "./chat-settings.ts";
export { cliSettings } from "./cli-settings.ts";
export type { ConfigNote } from "./config-note.ts";
export { placeText } from "./config-problem.ts";
export { configFilePath } from "./find-config-file.ts";
export { maskDeep, maskSecrets } from "./mask-secrets.ts";
export { assertReadable, isFolder, isThere, mostFileBytes, readBoundedFile } from "./node/file-access.ts";
export type { HelperModel } from "./session-settings.ts";
export { settingAliases } from "./setting-aliases.ts";
export { describeKind, parseSettingText } from "./setting-definition.ts";
export type { SettingDefinition } from "./setting-definition.ts";
export type { Setting } from "./setting-set.ts";
export { settingTables } from "./setting-tables.ts";
export { expandStoreUrl } from "./store-url.ts";
