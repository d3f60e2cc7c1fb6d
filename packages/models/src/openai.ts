export { createOpenAiChatModel } from "./create-openai-chat-model.ts";
export type { OpenAiChatModelOptions } from "./create-openai-chat-model.ts";
export { createOpenAiResponsesModel } from "./create-openai-responses-model.ts";
export type { OpenAiResponsesModelOptions } from "./create-openai-responses-model.ts";
