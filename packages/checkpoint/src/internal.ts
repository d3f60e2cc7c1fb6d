// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export type { NoCheckpointReason } from "./checkpoint-event.ts";
export { parseCheckpoint } from "./checkpoint-prompt.ts";
export { readCheckpointState } from "./checkpoint-state.ts";
export type { CheckpointState } from "./checkpoint-state.ts";
export { checkpointStatus } from "./checkpoint-status.ts";
export type { CheckpointStatus } from "./checkpoint-status.ts";
export { checkpointTrigger } from "./checkpoint-trigger.ts";
export { checkpointSettings } from "./settings.ts";
