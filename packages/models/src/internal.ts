// What the packages of Throughline share with each other. It may change in any release and is not part of the public interface.
export { modelProviders } from "./model-providers.ts";
export type { ModelProvider } from "./model-providers.ts";
export { parseModelName } from "./parse-model-name.ts";
