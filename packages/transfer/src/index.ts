export { appendLines, type Acknowledgement, type AppendLinesOptions } from "./append-lines.ts";
export { copySessions } from "./copy-sessions.ts";
export type { CopyOptions, CopyResult } from "./copy-sessions.ts";
export { databaseProgram } from "./database-file.ts";
export { exportAll, exportToFile } from "./export-files.ts";
export type { ExportAllOptions, ExportedFile, ExportFileOptions } from "./export-files.ts";
export { exportSession } from "./export-session.ts";
export type { ExportFormat, ExportOptions, ExportRemark } from "./export-types.ts";
export { importPaths } from "./import-paths.ts";
export { ImportResults, type ImportResult } from "./import-results.ts";
export { nameSessionId } from "./transcript-source.ts";
export { readDrafts, type DraftLine } from "./read-drafts.ts";
export { receiptOf } from "./import-receipt.ts";
export type { ImportReceipt } from "./import-receipt.ts";
export type {
  ImportFormat,
  ImportOptions,
  ImportProgress,
  ImportSource,
  ImportState,
  LostLine,
} from "./import-types.ts";
export { writeNewFile } from "./node/target-files.ts";
