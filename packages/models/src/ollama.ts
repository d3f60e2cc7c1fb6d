export { createOllamaModel } from "./create-ollama-model.ts";
export type { OllamaModelOptions } from "./create-ollama-model.ts";
