// Functions that the packages of Throughline share. They may change in any release and are not public.
export { keyedTurnId } from "./begin-turn.ts";
export { callDrafts } from "./call-record.ts";
export type { CallFacts } from "./call-record.ts";
export { decideApproval, listApprovals } from "./decide-approval.ts";
export { readHistoryCut } from "./explain-calls.ts";
export type { ExplainedCall } from "./explain-calls.ts";
export { closeLeasedTurn, leaseTurn } from "./lease-turn.ts";
export { processOwners } from "./process-owners.ts";
export { readCall } from "./read-calls.ts";
export type { FoundCall } from "./read-calls.ts";
export { rebuildSteps } from "./rebuild-call.ts";
export type { SendDenial } from "./send-denial.ts";
export { readTurnMark } from "./turn-mark.ts";
export { createTurnRules } from "./turn-rules.ts";
export type { SessionPolicyOptions, TurnRules } from "./turn-rules.ts";
export type { InterruptedTurn, PendingApproval } from "./turn-mark.ts";
export type { RetryStatus } from "./whole-turn/agent-status.ts";
export type { WholeTurnListener } from "./whole-turn/whole-turn-event.ts";
