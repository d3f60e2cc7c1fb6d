export { chatCheckpointWriter, summarizerCheckpointWriter } from "./checkpoint-writer.ts";
export type { CheckpointWriter } from "./checkpoint-writer.ts";
export type { CheckpointerOptions } from "./checkpointer-options.ts";
export { createCheckpointer } from "./checkpointer.ts";
export { listCheckpoints } from "./list-checkpoints.ts";
