// Functions that the packages of Throughline share. They may change in any release and are not public.
export { chatSettings } from "./chat-settings.ts";
export { cliSettings } from "./cli-settings.ts";
export type { ConfigNote } from "./config-note.ts";
export { configProblem, placeText } from "./config-problem.ts";
export { configFilePath } from "./find-config-file.ts";
export { maskDeep, maskSecrets } from "./mask-secrets.ts";
export {
  assertReadable,
  isFolder,
  isThere,
  mostFileBytes,
  rightsOf,
  readBoundedBytes,
  readBoundedFile,
} from "./node/file-access.ts";
export { findUserHome, findWorkingDirectory } from "./node/starting-place.ts";
export type { HelperModel, SessionSettings } from "./session-settings.ts";
export type { Setting } from "./setting-set.ts";
export { settingOf } from "./setting-of.ts";
export { encryptedOf, expandStoreUrl } from "./store-url.ts";
export { expandHome } from "./store-place.ts";
