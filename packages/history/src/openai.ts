export { recordFromReply, recordsFromMessages } from "./from-messages/openai.ts";
export { renderOpenAiChat } from "./render-openai-chat.ts";
export { renderOpenAiResponses } from "./render-openai-responses.ts";
export { validateOpenAiChat } from "./validate-openai-chat.ts";
export { validateOpenAiResponses } from "./validate-openai-responses.ts";
