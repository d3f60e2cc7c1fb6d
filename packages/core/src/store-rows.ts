// Records as rows, rows as pages, and pages as the end of a branch. For implementers, not for users.
export { pageRows, readBounds, readPages, seqsIn, watchBounds } from "./read-pages.ts";
export { BranchWalk, readContextRecords } from "./branch-walk.ts";
export type { PageRange } from "./read-pages.ts";
export { noPromotedColumns, promotedColumns } from "./promoted-columns.ts";
export type { PromotedColumns } from "./promoted-columns.ts";
export { createRowCoder, redactedRecord } from "./row-coder.ts";
export type { KeptPayload, PayloadPlace, RecordRow, RedactionInfo, RowCoder } from "./row-coder.ts";
