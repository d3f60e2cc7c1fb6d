export { localEmbedder } from "./local.ts";
export type { LocalEmbedderOptions } from "./local.ts";
export { ollamaEmbedder } from "./ollama.ts";
export type { OllamaEmbedderOptions } from "./ollama.ts";
export { openaiCompatible } from "./openai-compatible.ts";
export type { OpenAiEmbedderOptions } from "./openai-compatible.ts";
