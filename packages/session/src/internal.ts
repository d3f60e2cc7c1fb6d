// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export { keyedTurnId } from "./begin-turn.ts";
export { closeLeasedTurn, leaseTurn } from "./lease-turn.ts";
export type { CloseLeasedTurnOptions, LeasedTurn, LeaseTurnOptions } from "./lease-turn.ts";
export { processOwners } from "./process-owners.ts";
export { callDrafts } from "./call-record.ts";
export { readCall } from "./read-calls.ts";
export type { FoundCall } from "./read-calls.ts";
export { rebuildSteps } from "./rebuild-call.ts";
export { readTurnMark } from "./turn-mark.ts";
