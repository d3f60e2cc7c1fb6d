export { appendGarbage, appendZeros, cutFile, filePrefixes, flipByte } from "./faults/damage-file.ts";
export type { FilePrefix } from "./faults/damage-file.ts";
export { killProcess } from "./faults/kill-process.ts";
export type { KilledProcess, KillProcessOptions } from "./faults/kill-process.ts";
