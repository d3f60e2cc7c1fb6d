export type { CheckpointEvent } from "./checkpoint-event.ts";
export type { CheckpointSettings } from "./checkpoint-trigger.ts";
export { chatCheckpointWriter, summarizerCheckpointWriter } from "./checkpoint-writer.ts";
export type { CheckpointReply, CheckpointRequest, CheckpointWriter } from "./checkpoint-writer.ts";
export type { Checkpointer, CheckpointerOptions, CheckpointResult, CheckpointRun } from "./checkpointer-options.ts";
export { createCheckpointer } from "./checkpointer.ts";
export { listCheckpoints } from "./list-checkpoints.ts";
export type { ListedCheckpoint } from "./list-checkpoints.ts";
