// Records as rows, and rows as pages. For implementers, not for users.
export { pageRows, readBounds, readPages, seqsIn, watchBounds } from "./read-pages.ts";
export type { PageRange } from "./read-pages.ts";
export { noPromotedColumns, promotedColumns } from "./promoted-columns.ts";
export type { PromotedColumns } from "./promoted-columns.ts";
export { createRowCoder, redactedRecord } from "./row-coder.ts";
export type { KeptPayload, PayloadPlace, RecordRow, RedactionInfo, RowCoder } from "./row-coder.ts";
