export { createAgentScope } from "./agent-scope.ts";
export type { AgentScopeOptions } from "./agent-scope.ts";
export { inboundFields, recordInbound, updateRoute } from "./inbound-message.ts";
export type { InboundMessage, RecordInboundOptions } from "./inbound-message.ts";
export { keptOnReset, mergeEntry, statedFields } from "./merge-entry.ts";
export type { MergeEntryOptions } from "./merge-entry.ts";
export { renewTurn } from "./renew-turn.ts";
export type { RenewedTurn } from "./renew-turn.ts";
