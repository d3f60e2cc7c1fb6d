export { explainSettings } from "./explain-settings.ts";
export { loadConfigFile } from "./find-config-file.ts";
export { resolveConfig } from "./resolve-config.ts";
export type { Config } from "./resolve-config.ts";
export { sessionSettings } from "./session-settings.ts";
export { parseStoreUrl } from "./store-url.ts";
