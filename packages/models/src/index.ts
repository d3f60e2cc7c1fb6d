export { createModel } from "./create-model.ts";
export type { CreateModelOptions } from "./create-model.ts";
export { modelProviders } from "./model-providers.ts";
export type { ModelProvider } from "./model-providers.ts";
export { parseModelName } from "./parse-model-name.ts";
export type { NamedModel } from "./parse-model-name.ts";
