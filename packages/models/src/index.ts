export { modelFromSettings } from "./model-from-settings.ts";
export type { ModelSettings } from "./model-from-settings.ts";
export { modelProviders } from "./model-providers.ts";
export type { ModelProvider } from "./model-providers.ts";
export { parseModelName } from "./parse-model-name.ts";
export type { NamedModel } from "./parse-model-name.ts";
