// What the packages of Throughline share with each other. It may change in any release and is not part of the public interface.
export { checkBedrockConverse } from "./rules/bedrock-converse.ts";
export { checkGemini } from "./rules/gemini.ts";
export { checkMistral } from "./rules/mistral.ts";
export type { AnswerReply, ReplyPart } from "./simulated-reply.ts";
