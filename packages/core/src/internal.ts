// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export { isUnknown } from "./append-once.ts";
export { assertKeyFits, assertSignal } from "./assert-arguments.ts";
export { assertMilliseconds } from "./assert-milliseconds.ts";
export { auditSummary } from "./audit-summary.ts";
export type { AuditProblem } from "./audit-summary.ts";
export { BranchWalk, readContextRecords } from "./branch-walk.ts";
export { readUsage } from "./call-usage.ts";
export type { CallUsage } from "./call-usage.ts";
export { headAfterAppend } from "./check-append.ts";
export { misspelt } from "./check-draft.ts";
export { isColumnText } from "./column-text.ts";
export { Deadline } from "./deadline.ts";
export { applyRoute, normalizeDelivery } from "./delivery.ts";
export { endOfValue } from "./end-of-value.ts";
export { archivedAtMs, assertMayEnd, noteArchiving, waitForTurnEnd } from "./end-session.ts";
export type { WaitForTurnOptions } from "./end-session.ts";
export { entryBlobFields, isBlobNote, loadEntryBlobs, setBlobsAside, splitBlobs } from "./entry-blobs.ts";
export type { SplitEntry } from "./entry-blobs.ts";
export { findEntryFieldProblem, misspeltEntryField } from "./entry-fields.ts";
export { pathArgumentNames, writeToolNames } from "./file-tool-names.ts";
export { findRecordProblem } from "./find-record-problem.ts";
export type { RecordProblem } from "./find-record-problem.ts";
export { findingCodes } from "./finding.ts";
export { copyRecords, forkByCopy } from "./fork-session.ts";
export { inboundFields } from "./inbound-message.ts";
export { isSideRecord } from "./is-side-record.ts";
export { linearExpression } from "./linear/linear-expression.ts";
export type { LinearExpression } from "./linear/linear-expression.ts";
export { listPage } from "./list-page.ts";
export type { ListedSession, ListPosition } from "./list-page.ts";
export type { ListSource } from "./list-states.ts";
export { keptOnReset } from "./merge-entry.ts";
export { nearestName } from "./nearest-name.ts";
export type { NearestNameOptions } from "./nearest-name.ts";
export { isContinueMessage, isFlushMessage } from "./message-source.ts";
export { isNestedDeeper, maxArgumentsNesting, maxNesting } from "./nesting.ts";
export { assertArgument, assertKnownOptions, optionKinds } from "./option-checks.ts";
export type { OptionKind, OptionTable } from "./option-checks.ts";
export { assertMoveAction, planArchive } from "./plan-move.ts";
export { beginningMs } from "./plan-save.ts";
export { draftsFingerprint, lineBytes, linkRecords, prepareDrafts } from "./prepare-drafts.ts";
export { noPromotedColumns, promotedColumns } from "./promoted-columns.ts";
export type { PromotedColumns } from "./promoted-columns.ts";
export { createRecentBranch, danglingTailBytes } from "./recent-branch.ts";
export type { RecentBranch } from "./recent-branch.ts";
export { isKnownRecordType, wrappedTypes } from "./record-types.ts";
export { recordUsage } from "./record-usage.ts";
export { redactionTombstone } from "./redact-records.ts";
export { assertIdempotencyKey, assertNotForgotten, defaultIdempotency } from "./remembered-appends.ts";
export { renewTurn } from "./renew-turn.ts";
export { resetUnchanged } from "./reset-unchanged.ts";
export { redactedRecord } from "./row-coder.ts";
export type { RedactionInfo } from "./row-coder.ts";
export { parseSearch } from "./search-plan.ts";
export { toolWord } from "./search-words.ts";
export { nextUpdatedAtMs, ownEntry } from "./session-entry.ts";
export { isAgentId, isSessionId } from "./session-id.ts";
export { sessionKeyAliases, sessionKeyHasPrefix } from "./session-key.ts";
export type { SettingField, SettingFragment, SettingKind, SettingValue } from "./setting-fragment.ts";
export { spawnLineage } from "./spawn-lineage.ts";
export type { SpawnLineage } from "./spawn-lineage.ts";
export { childSessionKey } from "./spawn-session.ts";
export { bulkBatchOf } from "./store-capabilities.ts";
export {
  isOutdatedSummary,
  outdatedSummaryIds,
  proseOf,
  summaryDetailsHeading,
  withheldSummary,
} from "./summary-parts.ts";
export { tellListener } from "./tell-listener.ts";
export { thinkingLevels } from "./thinking-levels.ts";
export { shellWord } from "./throughline-error.ts";
export { isFromNewerVersion, throughlineDraft, throughlineKind } from "./throughline-record.ts";
export { argumentProblem } from "./tool-arguments.ts";
export { toolNameRule, toolsByWireName, wireToolName } from "./tool-names.ts";
export type { ToolNameRule } from "./tool-names.ts";
export { untilAborted } from "./until-aborted.ts";
