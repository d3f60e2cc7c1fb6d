export { createProviderSimulator } from "./provider-simulator.ts";
export type { AnswerReply, SimulatedReply } from "./simulated-reply.ts";
export type { ProviderSimulator, ProviderSimulatorOptions, ReceivedRequest } from "./simulator-options.ts";
