export { copySessions } from "./copy-sessions.ts";
export type { CopyOptions } from "./copy-sessions.ts";
export { exportSession } from "./export-session.ts";
export type { ExportOptions } from "./export-types.ts";
export { exportTranscript } from "./transcript/export-transcript.ts";
export { importPaths } from "./import-paths.ts";
export type { ImportOptions } from "./import-types.ts";
