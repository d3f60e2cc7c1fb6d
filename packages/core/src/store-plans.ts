// What an operation does to a session, decided before anything is written. For implementers, not for users.
export {
  assertKeyFits,
  assertObjects,
  assertRedaction,
  assertRef,
  assertSignal,
  forkBound,
} from "./assert-arguments.ts";
export { planAppend, prepareAppend } from "./plan-append.ts";
export type { AppendPlan, AppendRequest, AppendTarget } from "./plan-append.ts";
export { assertIdsFree, IdClaims } from "./id-claims.ts";
export { assertMoveAction, assertNotArchived, planArchive, planMove, planRedaction, planRemove } from "./plan-move.ts";
export type { MovePlan } from "./plan-move.ts";
export { beginningMs, planSave } from "./plan-save.ts";
export type { SaveTerms } from "./plan-save.ts";
export type { SavePlan } from "./plan-save.ts";
export { planEntry, sessionState } from "./session-frame.ts";
export type { EntryPlan, SessionFrame } from "./session-frame.ts";
