export { recordFromReply, recordsFromMessages } from "./from-messages/ollama.ts";
export { renderOllama } from "./render-ollama.ts";
export { validateOllama } from "./validate-ollama.ts";
