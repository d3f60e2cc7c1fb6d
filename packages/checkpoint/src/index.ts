export { chatCheckpointWriter, summarizerCheckpointWriter } from "./checkpoint-writer.ts";
export type { CheckpointWriter } from "./checkpoint-writer.ts";
export type { Checkpointer, CheckpointerOptions } from "./checkpointer-options.ts";
export { createCheckpointer } from "./checkpointer.ts";
export { listCheckpoints } from "./list-checkpoints.ts";
export type { ListedCheckpoint } from "./list-checkpoints.ts";
