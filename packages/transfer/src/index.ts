export { copySessions } from "./copy-sessions.ts";
export type { CopyOptions, CopyResult } from "./copy-sessions.ts";
export { exportSession } from "./export-session.ts";
export type { ExportFormat, ExportOptions } from "./export-types.ts";
export { importPaths } from "./import-paths.ts";
export { ImportResults } from "./import-results.ts";
export type { ImportOptions } from "./import-types.ts";
