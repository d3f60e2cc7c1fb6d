// What every store shares, so that no rule of the contract is written twice. For implementers, not for users.
export { misspelt } from "./check-draft.ts";
export { draftsFingerprint, lineBytes, linkRecords, prepareDrafts, serializeRecord } from "./prepare-drafts.ts";
export type { LinkedRecord, PreparedRecord, PrepareOptions } from "./prepare-drafts.ts";
export { untilAborted } from "./until-aborted.ts";
export { assertMilliseconds } from "./assert-milliseconds.ts";
export { assertArgument, assertKnownOptions, optionKinds } from "./option-checks.ts";
export type { NumberRange, OptionKind, OptionKinds, OptionTable } from "./option-checks.ts";
export { isColumnText } from "./column-text.ts";
export { endOfValue } from "./end-of-value.ts";
export { createRecentBranch, danglingTailBytes } from "./recent-branch.ts";
export type { RecentBranch } from "./recent-branch.ts";
export { redactionTombstone } from "./redact-records.ts";
export { isNestedDeeper, maxArgumentsNesting, maxNesting } from "./nesting.ts";
export { abortedBefore, refused } from "./refused.ts";
export { givenEntry, nextUpdatedAtMs, ownEntry, patchEntry } from "./session-entry.ts";
export { assertAgentId, assertNamespace, assertSessionId, quote } from "./session-id.ts";
export { sessionNotFound } from "./open-session.ts";
export { sessionRefText } from "./session-ref.ts";
export { bulkBatchOf, defaultStoreLimits } from "./store-capabilities.ts";
export { assertBatchSize, headAfterAppend, writeDurability } from "./check-append.ts";
export { listPage, planList, sessionsBehind } from "./list-page.ts";
export { ListedStates } from "./list-states.ts";
export type { ListSource } from "./list-states.ts";
export type { ListedSession, ListPlan, ListPosition } from "./list-page.ts";
export { createPayloadCoder } from "./payload-coder.ts";
export type { PayloadCoder, PayloadOwner } from "./payload-coder.ts";
export {
  assertIdempotencyKey,
  assertNotForgotten,
  defaultIdempotency,
  RememberedAppends,
} from "./remembered-appends.ts";
export { isKnownRecordType, wrappedTypes } from "./record-types.ts";
export { argumentProblem } from "./tool-arguments.ts";
