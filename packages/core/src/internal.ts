// Functions that the packages of Throughline share. They may change in any release and are not public.
export { isUnknown } from "./append-once.ts";
export type { AppendOnceOptions } from "./append-once.ts";
export { storedRecord, withStored } from "./append-stored.ts";
export { auditSummary } from "./audit-summary.ts";
export type { AuditProblem } from "./audit-summary.ts";
export { BranchWalk, SettingsSearch, readContextRecords } from "./branch-walk.ts";
export { mainSessionKey, subagentSessionKey } from "./build-session-key.ts";
export { readUsage } from "./call-usage.ts";
export type { CallUsage } from "./call-usage.ts";
export { causeText } from "./cause-text.ts";
export type { CodecContext } from "./codec.ts";
export { isColumnText } from "./column-text.ts";
export { commandLine } from "./command-line.ts";
export { commandPackage } from "./command-package.ts";
export { crc32 } from "./crc32.ts";
export { Deadline } from "./deadline.ts";
export { applyRoute } from "./delivery.ts";
export { endOfValue } from "./end-of-value.ts";
export { earlierSessions } from "./queries/earlier-sessions.ts";
export type { EarlierSession } from "./queries/earlier-sessions.ts";
export { archivedAtMs, archivingEntry, assertMayEnd, endNow, noteArchiving, waitForTurnEnd } from "./end-session.ts";
export type { WaitForTurnOptions } from "./end-session.ts";
export { entryBlobFields, isBlobNote, loadEntryBlobs, setBlobsAside, splitBlobs } from "./entry-blobs.ts";
export type { SplitEntry } from "./entry-blobs.ts";
export {
  assertEntryBounds,
  assertFewMembers,
  entryExcess,
  entryTooLarge,
  maxEntryBytes,
  maxEntryMembers,
} from "./entry-bounds.ts";
export { isErasedPayload, isKeyMissing, isLostPayload } from "./erased-payload.ts";
export { errorCodes } from "./error-codes.ts";
export { pathArgumentNames, writeToolNames } from "./file-tool-names.ts";
export { fileBlock, fileIdsOf, fileReferencesOf, isFileId, isFileReference } from "./file-blocks.ts";
export type { FileBlock, FileReference } from "./file-blocks.ts";
export { findRecordProblem } from "./find-record-problem.ts";
export { createFinding, findingCodes } from "./finding.ts";
export type { FindingCode, FindingPlace } from "./finding.ts";
export { copyRecords, forkByCopy, forkSession } from "./fork-session.ts";
export { isSideRecord } from "./is-side-record.ts";
export { isFields, parsedFields } from "./json-object.ts";
export type { Fields } from "./json-object.ts";
export { KeyedQueues } from "./keyed-queues.ts";
export { linearExpression } from "./linear/linear-expression.ts";
export type { LinearExpression } from "./linear/linear-expression.ts";
export { keptOnReset, mergeEntry, statedFields } from "./merge-entry.ts";
export { isContinueMessage, isFlushMessage } from "./message-source.ts";
export { nearestName } from "./nearest-name.ts";
export { isNestedDeeper, maxArgumentsNesting, maxNesting } from "./nesting.ts";
export { monotonicMs, systemClock, systemRandom, systemRecordIds, withSystemPorts } from "./node/system-ports.ts";
export type { SystemPorts } from "./node/system-ports.ts";
export { onePiece } from "./one-piece.ts";
export { followingEntry, loadExisting, resetSession, saveOnce, sessionNotFound, updateEntry } from "./open-session.ts";
export type { ResetSessionOptions } from "./open-session.ts";
export { openThread } from "./open-thread.ts";
export { assertArgument, assertKnownOptions, optionKinds } from "./option-checks.ts";
export type { OptionKind, OptionTable } from "./option-checks.ts";
export { modelKind, modelTable, portKinds, toolChoiceKind } from "./port-kinds.ts";
export type { EmbedOptions, Environment, OutputFormat, SessionModel, ToolChoice } from "./ports.ts";
export {
  draftsFingerprint,
  headAfter,
  lineBytes,
  linkRecords,
  misspelt,
  prepareDrafts,
  serializeRecord,
} from "./prepare-drafts.ts";
export type { LinkedRecord, PreparedRecord } from "./prepare-drafts.ts";
export { providerLimits } from "./provider-limits.ts";
export type { NameLimit } from "./provider-limits.ts";
export { createSession, freeRef } from "./queries/create-session.ts";
export { findRecord } from "./queries/find-record.ts";
export { followRecords } from "./queries/follow-records.ts";
export { forkToNewSession } from "./queries/fork-to-new-session.ts";
export { HitGroups, isProse } from "./queries/hit-groups.ts";
export type { HitGroup } from "./queries/hit-groups.ts";
export {
  commandText,
  isFailedRecord,
  isFailedTool,
  pathNames,
  touchedFiles,
  writtenPaths,
} from "./queries/touched-files.ts";
export { blocksText, messageRole, recordRole, recordText } from "./queries/record-text.ts";
export { loadNamed, relatedSessions } from "./queries/related-sessions.ts";
export { renameSession } from "./queries/rename-session.ts";
export {
  listSessions,
  locateSession,
  matchSession,
  newSessionRef,
  refsOf,
  resolveSession,
  sessionCandidate,
} from "./queries/resolve-session.ts";
export type { SessionScope } from "./queries/resolve-session.ts";
export { restoreSession } from "./queries/restore-session.ts";
export {
  givenName,
  modelName,
  percentOf,
  sessionLabel,
  sessionName,
  sessionProgram,
  sessionRow,
} from "./queries/session-row.ts";
export type { SessionRow } from "./queries/session-row.ts";
export { sessionFilter } from "./queries/session-filter.ts";
export type { SessionFilter } from "./queries/session-filter.ts";
export { deleteUser } from "./queries/delete-user.ts";
export type { DeleteUserOptions, UserDeletion } from "./queries/delete-user.ts";
export { nothingSpent, readSpend } from "./session-spend.ts";
export type { Spend } from "./session-spend.ts";
export { sessionTotals } from "./queries/session-totals.ts";
export { isTerminalKey, terminalSessionKey } from "./queries/terminal-keys.ts";
export type { RecordWindow } from "./read-window.ts";
export { createRecentBranch, danglingTailBytes } from "./recent-branch.ts";
export type { RecentBranch } from "./recent-branch.ts";
export type { RecordSource, SourcedDraft } from "./record-draft.ts";
export { createRecordIds } from "./record-ids.ts";
export { derivedFromOf, sourceFormatOf } from "./record-origin.ts";
export { isKnownRecordType, wrappedTypes } from "./record-types.ts";
export { recordUsage } from "./record-usage.ts";
export type { BashExecutionMessage, Checkpoint, UnknownBlock } from "./record.ts";
export { maskedRecord, maskedSource } from "./masked-texts.ts";
export { isTombstone, redactionTombstone } from "./redaction-tombstone.ts";
export { abortedBefore, refused } from "./refused.ts";
export {
  RememberedAppends,
  assertIdempotencyKey,
  assertNotForgotten,
  defaultIdempotency,
  earlierResult,
} from "./remembered-appends.ts";
export { renewTurn } from "./renew-turn.ts";
export { isSameJson } from "./same-json.ts";
export type { PurgedSource, PurgesOptions } from "./store-facets.ts";
export { assertPurges, entrySourceDigest, importSourceDigest } from "./import-source.ts";
export { findMatches, searchSnippet } from "./search-match.ts";
export { assertSearchQuery, parseAnyOf, parseSearch, readSearchQuery } from "./search-plan.ts";
export type { SearchClause, SearchPlan, SearchScope } from "./search-plan.ts";
export { searchText, type SearchText } from "./search-text.ts";
export { roleToken, tokenList, tokenPlan, type SearchToken } from "./search-tokens.ts";
export { stemOf } from "./search-stems.ts";
export { scanWords, searchIndexText, toolWord } from "./search-words.ts";
export type { MessageDraft, NewMessage, ReplyDraft, SessionDraft } from "./session-draft.ts";
export { givenEntry, givenPatch, nextUpdatedAtMs, ownEntry, patchEntry } from "./session-entry.ts";
export type { DeliveryContext, SessionOrigin } from "./session-entry.ts";
export { assertAgentId, assertNamespace, assertSessionId, isAgentId, isSessionId, quote } from "./session-id.ts";
export { agentOfKey, sessionKeyAliases, sessionKeyHasPrefix } from "./session-key.ts";
export { sessionRefText } from "./session-ref.ts";
export type { SessionAddress } from "./session-ref.ts";
export type { AppendedRecord, StoreLockOptions } from "./session-store.ts";
export type { SettingField, SettingFragment, SettingKind, SettingValue } from "./setting-fragment.ts";
export { sha256Hex } from "./sha256.ts";
export { storeFiles } from "./store-files.ts";
export { stateFingerprint } from "./stated-fingerprint.ts";
export { bulkBatchOf, defaultStoreLimits } from "./store-capabilities.ts";
export type { StoreLimits } from "./store-capabilities.ts";
export type {
  FileScope,
  GetFileOptions,
  ListedFile,
  PutFileOptions,
  RebuiltFile,
  SharedRecords,
  StoredFile,
} from "./store-facets.ts";
export { embedTexts } from "./embed-texts.ts";
export type {
  NearestHit,
  NearestQuery,
  PendingQuery,
  PendingRange,
  PendingVectors,
  TextVector,
  VectorPut,
  VectorScope,
} from "./vectors-facet.ts";
export { assertStoreOptions, storeFactoryKinds, storeOptionTables } from "./store-option-tables.ts";
export type { StoreMethodName } from "./store-option-tables.ts";
export type { ReadPayload, RecordFor, RecordHead, SourcedRecord } from "./stored-records.ts";
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
export type { WriteOutcome } from "./throughline-error.ts";
export { isFromNewerVersion, throughlineDraft, throughlineKind } from "./throughline-record.ts";
export { issueText, readSchema } from "./checked-schema.ts";
export type { CheckedSchema, JsonObjectSchema, SchemaInput, SchemaIssue, SchemaValue } from "./checked-schema.ts";
export { choiceName, outputFields, toolChoiceFields, wireToolChoices } from "./request-fields.ts";
export { argumentProblem } from "./tool-arguments.ts";
export { toolsByWireName, wireToolName } from "./tool-names.ts";
export { sessionBusy, stillAnswering, turnHolder } from "./turn-holder.ts";
export { nextTurnState } from "./turn-lease.ts";
export { FifoLock } from "./fifo-lock.ts";
export { isLostPartial, isUnreadablePartial } from "./unreadable-partial.ts";
export { untilAborted } from "./until-aborted.ts";
export { createWorkSlices, fewerSteps, inFewerSteps, runInSlices, runSteps, sliceSteps } from "./work-slices.ts";
export type { Steps } from "./work-slices.ts";
export { wrongOptions } from "./wrong-options.ts";
export { countWaitingCalls, waitingCalls, waitingSign } from "./waiting-calls.ts";
export type { WaitingCalls } from "./waiting-calls.ts";
