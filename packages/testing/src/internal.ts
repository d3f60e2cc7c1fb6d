// Functions that the packages of Throughline share. They may change in any release and are not public.
export { checkBedrockConverse } from "./rules/bedrock-converse.ts";
export { checkGemini } from "./rules/gemini.ts";
export { checkMistral } from "./rules/mistral.ts";
export type { AnswerReply, ReplyPart } from "./simulated-reply.ts";
