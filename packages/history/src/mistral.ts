export { recordFromReply, recordsFromMessages } from "./from-messages/mistral.ts";
export { renderMistral } from "./render-mistral.ts";
export { validateMistral } from "./validate-mistral.ts";
