// Functions that the packages of Throughline share. They may change in any release and are not public.
export type { CheckpointEvent, NoCheckpointReason } from "./checkpoint-event.ts";
export { readCheckpointState } from "./checkpoint-state.ts";
export { checkpointStatus } from "./checkpoint-status.ts";
export type { CheckpointStatus } from "./checkpoint-status.ts";
export type { CheckpointSettings } from "./checkpoint-trigger.ts";
export type { CheckpointResult, Checkpointer } from "./checkpointer-options.ts";
export type { ListedCheckpoint } from "./list-checkpoints.ts";
export { checkpointSettings } from "./settings.ts";
