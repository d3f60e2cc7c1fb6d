export { createAnthropicModel } from "./create-anthropic-model.ts";
export type { AnthropicModelOptions } from "./create-anthropic-model.ts";
