export { ThroughlineSaver, createCheckpointSaver } from "./checkpoint-saver.ts";
export type { CheckpointSaverOptions } from "./checkpoint-saver.ts";
