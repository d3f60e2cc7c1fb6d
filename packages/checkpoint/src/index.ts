export type { CheckpointEvent, CheckpointListener, NoCheckpointReason } from "./checkpoint-event.ts";
export { parseCheckpoint } from "./checkpoint-prompt.ts";
export type { CheckpointContent } from "./checkpoint-prompt.ts";
export { readCheckpointState } from "./checkpoint-state.ts";
export type { CheckpointState } from "./checkpoint-state.ts";
export { checkpointStatus } from "./checkpoint-status.ts";
export type { CheckpointStatus } from "./checkpoint-status.ts";
export { checkpointTrigger } from "./checkpoint-trigger.ts";
export type { CheckpointMeasurement, CheckpointSettings, CheckpointTrigger } from "./checkpoint-trigger.ts";
export { chatCheckpointWriter, summarizerCheckpointWriter } from "./checkpoint-writer.ts";
export type { CheckpointReply, CheckpointRequest, CheckpointWriter } from "./checkpoint-writer.ts";
export { createCheckpointer } from "./checkpointer.ts";
export type {
  CheckpointerOptions,
  Checkpointer,
  CheckpointResult,
  CheckpointRun,
  TurnSize,
} from "./checkpointer-options.ts";
export { listCheckpoints } from "./list-checkpoints.ts";
export type { ListedCheckpoint } from "./list-checkpoints.ts";
