// What every store shares, so that no rule of the contract is written twice. For implementers, not for users.
export {
  assertKeyFits,
  assertObjects,
  assertRedaction,
  assertRef,
  assertSignal,
  forkBound,
} from "./assert-arguments.ts";
export { assertMilliseconds } from "./assert-milliseconds.ts";
export { assertBatchSize, headAfterAppend, writeDurability } from "./check-append.ts";
export { isColumnText } from "./column-text.ts";
export { createCapabilities } from "./create-capabilities.ts";
export type { CapabilityOptions } from "./create-capabilities.ts";
export { createHandleLife } from "./handle-life.ts";
export type { HandleLife } from "./handle-life.ts";
export { holdLock, lockedAgent } from "./hold-lock.ts";
export type { LockAttempts, ReleaseLock } from "./hold-lock.ts";
export { assertIdsFree, IdClaims } from "./id-claims.ts";
export { listPage, planList, sessionsBehind } from "./list-page.ts";
export type { ListedSession, ListPlan, ListPosition } from "./list-page.ts";
export { ListedStates } from "./list-states.ts";
export type { ListSource } from "./list-states.ts";
export { sessionNotFound } from "./open-session.ts";
export { createPayloadCoder } from "./payload-coder.ts";
export type { PayloadCoder, PayloadOwner } from "./payload-coder.ts";
export { planAppend, prepareAppend } from "./plan-append.ts";
export type { AppendPlan, AppendRequest, AppendTarget } from "./plan-append.ts";
export { assertMoveAction, assertNotArchived, planArchive, planMove, planRedaction, planRemove } from "./plan-move.ts";
export type { MovePlan } from "./plan-move.ts";
export { beginningMs, planSave } from "./plan-save.ts";
export type { SavePlan, SaveTerms } from "./plan-save.ts";
export { draftsFingerprint, lineBytes, linkRecords, prepareDrafts, serializeRecord } from "./prepare-drafts.ts";
export type { LinkedRecord, PreparedRecord, PrepareOptions } from "./prepare-drafts.ts";
export { noPromotedColumns, promotedColumns } from "./promoted-columns.ts";
export type { PromotedColumns } from "./promoted-columns.ts";
export { pageRows, readBounds, readPages, seqsIn, watchBounds } from "./read-pages.ts";
export type { PageRange } from "./read-pages.ts";
export { redactionTombstone } from "./redact-records.ts";
export { abortedBefore, refused } from "./refused.ts";
export {
  assertIdempotencyKey,
  assertNotForgotten,
  defaultIdempotency,
  RememberedAppends,
} from "./remembered-appends.ts";
export { createRowCoder, redactedRecord } from "./row-coder.ts";
export type { KeptPayload, PayloadPlace, RecordRow, RedactionInfo, RowCoder } from "./row-coder.ts";
export { findMatches, searchSnippet } from "./search-match.ts";
export type { SearchMatches, SearchSnippet } from "./search-match.ts";
export { maxQueryLength, parseSearch, readSearchQuery } from "./search-plan.ts";
export type { SearchClause, SearchPlan, SearchScope } from "./search-plan.ts";
export { maxSearchTextLength, searchText } from "./search-text.ts";
export type { SearchText } from "./search-text.ts";
export { searchIndexText, toolWord } from "./search-words.ts";
export type { SearchIndexText } from "./search-words.ts";
export { givenEntry, nextUpdatedAtMs, ownEntry } from "./session-entry.ts";
export { planEntry, planFieldRemoval, sessionState } from "./session-frame.ts";
export type { EntryPlan, SessionFrame } from "./session-frame.ts";
export { assertAgentId, assertNamespace, assertSessionId, quote } from "./session-id.ts";
export { sessionRefText } from "./session-ref.ts";
export { defaultStoreLimits } from "./store-capabilities.ts";
