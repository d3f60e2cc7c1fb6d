import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { ThroughlineError } from "@throughline/core";

/** Holds LangChain's `RunnableConfig`. Deriving it from the checkpointer avoids a dependency on `@langchain/core`. */
export type RunConfig = Parameters<BaseCheckpointSaver["getTuple"]>[0];

export interface RunPlace<ThreadId = string | null, CheckpointId = string | null> {
  readonly threadId: ThreadId;
  readonly ns: string;
  readonly checkpointId: CheckpointId;
}

/**
 * Reads the thread, namespace and checkpoint from a config.
 * @param action What needs a thread. @default it may be missing
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function placeIn(config: RunConfig): RunPlace;
export function placeIn(config: RunConfig, action: string): RunPlace<string>;
export function placeIn(config: RunConfig, action: string, needsCheckpoint: true): RunPlace<string, string>;
export function placeIn(config: RunConfig, action?: string, needsCheckpoint = false): RunPlace {
  const { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: checkpointId } = config.configurable ?? {};
  const place = {
    threadId: textIn("thread_id", threadId),
    ns: textIn("checkpoint_ns", ns) ?? "",
    checkpointId: textIn("checkpoint_id", checkpointId) || null,
  };
  if (action !== undefined && place.threadId === null) throw missingField(action, "thread_id");
  if (action !== undefined && needsCheckpoint && place.checkpointId === null)
    throw missingField(action, "checkpoint_id");
  return place;
}

function textIn(name: string, value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "string") return value;
  throw new ThroughlineError("INPUT_INVALID", `configurable.${name} must be a string; received ${typeof value}.`, {
    outcome: "not-applied",
  });
}

function missingField(action: string, name: string): ThroughlineError {
  const message = `Could not ${action}: the config has no configurable.${name}.`;
  const remedy = `Pass { configurable: { ${name}: "…" } } to the graph.`;
  return new ThroughlineError("INPUT_INVALID", message, { outcome: "not-applied", remedy });
}
