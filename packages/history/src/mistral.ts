export { renderMistral } from "./render-mistral.ts";
export type { MistralCall, MistralChunk, MistralMessage } from "./render-mistral.ts";
export { validateMistral } from "./validate-mistral.ts";
