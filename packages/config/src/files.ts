export { configFilePath, loadConfigFile, type ConfigFilePlace } from "./find-config-file.ts";
export {
  assertReadable,
  isFolder,
  isThere,
  mostFileBytes,
  readBoundedFile,
  type BoundedFileOptions,
} from "./node/file-access.ts";
