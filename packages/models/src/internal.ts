// Functions that the packages of Throughline share. They may change in any release and are not public.
export { modelProviders } from "./model-providers.ts";
export type { ModelProvider } from "./model-providers.ts";
export { parseModelName } from "./parse-model-name.ts";
