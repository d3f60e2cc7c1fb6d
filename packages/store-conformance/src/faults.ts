export { appendGarbage, appendZeros, cutFile, filePrefixes, flipByte } from "./faults/damage-file.ts";
export type { FilePrefix } from "./faults/damage-file.ts";
export { killProcess } from "./faults/kill-process.ts";
export type { KilledProcess, KillProcessOptions } from "./faults/kill-process.ts";
export { startHolder } from "./faults/start-holder.ts";
export type { Holder, HolderOptions } from "./faults/start-holder.ts";
