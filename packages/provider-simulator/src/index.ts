export { createProviderSimulator } from "./provider-simulator.ts";
export type {
  ProviderSimulator,
  ProviderSimulatorOptions,
  ReceivedRequest,
  Refusal,
  RequestOutcome,
} from "./simulator-options.ts";
export type { AnswerReply, ErrorReply, ReplyPart, ReplyStop, ReplyUsage, SimulatedReply } from "./simulated-reply.ts";
export type { SimulatedModel } from "./model-table.ts";
export type { SimulatedApi } from "./wire-adapter.ts";
export { checkBedrockConverse } from "./rules/bedrock-converse.ts";
export { checkGemini } from "./rules/gemini.ts";
export { checkMistral } from "./rules/mistral.ts";
export type { Violation } from "./violation.ts";
