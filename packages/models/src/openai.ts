export { openai } from "./openai-model.ts";
export type { OpenAiModelOptions } from "./openai-model.ts";
