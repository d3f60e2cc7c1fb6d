// Functions that the packages of Throughline share. They may change in any release and are not public.
export { assertKeyFits, assertRedaction, assertRef, forkBound } from "./assert-arguments.ts";
export { assertFileRange, beginFileWork, getFileTable, listFilesTable, putFileTable } from "./file-arguments.ts";
export { uploadEndsMs } from "./file-backend.ts";
export type { FileBackend, FileUpload, KeptFile } from "./file-backend.ts";
export { createFilesFacet, damagedFile, fileNotFound, fileOwner, isFileIntact } from "./files-facet.ts";
export { assertPiece, fileChunkBytes, fileTooLarge, receiveChunks } from "./receive-file.ts";
export { followSession } from "./follow-session.ts";
export type { Reached } from "./follow-session.ts";
export type { HandleLife } from "./handle-life.ts";
export { holdLock, lockedAgent } from "./hold-lock.ts";
export type { ReleaseLock } from "./hold-lock.ts";
export { assertIdsFree } from "./id-claims.ts";
export { listPosition, planList, sessionsBehind, withinBytes } from "./list-page.ts";
export type { ListPlan, ListPosition, ListedSession } from "./list-page.ts";
export { ListedStates } from "./list-states.ts";
export type { ListSource } from "./list-states.ts";
export {
  assertFence,
  assertPartialFits,
  checkPartial,
  damagedPartial,
  isPartialOf,
  isSealIntact,
  preparePartial,
  readPartial,
  sealJson,
} from "./partial-reply.ts";
export type { KeptPartial } from "./partial-reply.ts";
export { codecTokens, createPayloadCoder, isUndecodedPayload } from "./payload-coder.ts";
export type { PayloadCoder, PayloadOwner } from "./payload-coder.ts";
export { assertBatchSize, patchedWithin, planAppend, prepareAppend, writeDurability } from "./plan-append.ts";
export type { AppendPlan, AppendRequest } from "./plan-append.ts";
export { assertMoveAction, assertNotArchived, planArchive, planMove, planRedaction, planRemove } from "./plan-move.ts";
export { beginningMs, planSave } from "./plan-save.ts";
export { noPromotedColumns, promotedColumns } from "./promoted-columns.ts";
export type { PromotedColumns } from "./promoted-columns.ts";
export { checkedPage, pageRows, readBounds, readPages, watchBounds } from "./read-pages.ts";
export type { PageRange } from "./read-pages.ts";
export { createRowCoder, redactedRecord } from "./row-coder.ts";
export type { KeptPayload, PayloadPlace, RecordRow, RedactionInfo, RowCoder } from "./row-coder.ts";
export { planFieldRemoval, sessionState } from "./session-frame.ts";
export type { SessionFrame } from "./session-frame.ts";
export type { WatchStart, Watched } from "./watch-hub.ts";
export type {
  KeptPut,
  KeptVector,
  NumberedCode,
  NumberedVector,
  SessionNumber,
  ShownSession,
  VectorBackend,
} from "./vector-backend.ts";
export { assertForgetOptions, assertNearestQuery, assertPendingQuery, assertVectorPut } from "./vector-checks.ts";
export { pendingOf, VectorTable } from "./vector-table.ts";
export type { VectorProgress, VectorSession } from "./vector-table.ts";
export { createVectorsFacet, vectorMark } from "./vectors-facet.ts";
export { createCapabilities } from "./create-capabilities.ts";
export { createHandleLife } from "./handle-life.ts";
export { WatchHub } from "./watch-hub.ts";
