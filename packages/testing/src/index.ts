export { scriptedModel } from "./scripted-model.ts";
export { createProviderSimulator } from "./provider-simulator.ts";
export type { SimulatedReply } from "./simulated-reply.ts";
export type { ProviderSimulator, ProviderSimulatorOptions, ReceivedRequest } from "./simulator-options.ts";
