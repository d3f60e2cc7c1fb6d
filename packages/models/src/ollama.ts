export { ollama } from "./ollama-chat.ts";
export type { OllamaModelOptions } from "./ollama-chat.ts";
