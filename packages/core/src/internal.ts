// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export { isUnknown } from "./append-once.ts";
export { auditSummary } from "./audit-summary.ts";
export type { AuditOptions, AuditProblem } from "./audit-summary.ts";
export { BranchWalk, readContextRecords } from "./branch-walk.ts";
export { readUsage } from "./call-usage.ts";
export type { CallUsage } from "./call-usage.ts";
export { misspelt } from "./check-draft.ts";
export { Deadline } from "./deadline.ts";
export { applyRoute, normalizeDelivery } from "./delivery.ts";
export { endOfValue } from "./end-of-value.ts";
export { archivedAtMs, assertMayEnd, noteArchiving } from "./end-session.ts";
export { entryBlobFields, isBlobNote, loadEntryBlobs, setBlobsAside, splitBlobs } from "./entry-blobs.ts";
export type { SplitEntry } from "./entry-blobs.ts";
export { findEntryFieldProblem, misspeltEntryField } from "./entry-fields.ts";
export type { EntryFieldProblem } from "./entry-fields.ts";
export { pathArgumentNames, writeToolNames } from "./file-tool-names.ts";
export { copyRecords, forkByCopy } from "./fork-session.ts";
export { inboundFields } from "./inbound-message.ts";
export { linearExpression } from "./linear/linear-expression.ts";
export type { LinearExpression } from "./linear/linear-expression.ts";
export { keptOnReset, statedFields } from "./merge-entry.ts";
export { nearestName } from "./nearest-name.ts";
export type { NearestNameOptions } from "./nearest-name.ts";
export { isContinueMessage, isFlushMessage } from "./message-source.ts";
export { isNestedDeeper, maxArgumentsNesting, maxNesting } from "./nesting.ts";
export { assertArgument, assertKnownOptions, optionKinds } from "./option-checks.ts";
export type { NumberRange, OptionKind, OptionKinds, OptionTable } from "./option-checks.ts";
export { createRecentBranch, danglingTailBytes } from "./recent-branch.ts";
export type { RecentBranch } from "./recent-branch.ts";
export { isKnownRecordType, wrappedTypes } from "./record-types.ts";
export { recordUsage } from "./record-usage.ts";
export { resetUnchanged } from "./reset-unchanged.ts";
export type { SettingField, SettingFragment, SettingKind, SettingScalar, SettingValue } from "./setting-fragment.ts";
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
export { argumentProblem } from "./tool-arguments.ts";
export { toolNameRule, toolsByWireName, wireToolName } from "./tool-names.ts";
export type { ToolNameRule } from "./tool-names.ts";
export { untilAborted } from "./until-aborted.ts";
