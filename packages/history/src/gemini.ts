export { recordFromReply, recordsFromMessages } from "./from-messages/gemini.ts";
export { renderGemini } from "./render-gemini.ts";
export { validateGemini } from "./validate-gemini.ts";
