import type { Checkpoint, CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { SessionEntry, SessionRef } from "@throughline/core";
import {
  adapterOptions,
  type AdapterOptions,
  assertMaySend,
  beforeRun,
  keptOfRun,
  type RunPolicyOptions,
} from "@throughline/foreign-formats/internal";
import { placeIn, type RunConfig } from "./run-config.ts";
import { threadField, type Thread } from "./thread.ts";

export class RunRules {
  readonly #options: AdapterOptions & RunPolicyOptions;

  constructor(options: AdapterOptions & RunPolicyOptions) {
    this.#options = options;
  }

  /**
   * Call this before a thread is read. A run reads it once, before it asks a model; sub-graphs belong to the run.
   * @throws {ThroughlineError} SEND_DENIED, and what the store throws
   */
  async beforeRun(thread: Thread, config: RunConfig): Promise<void> {
    if (!isOfRun(config) || isNested(config)) return;
    const { store, clock, random } = adapterOptions(this.#options);
    const { ref } = thread.log;
    const isNew = placeIn(config).checkpointId === null && (await isAtRest(thread));
    await beforeRun({ store, ref, clock, random, isNew, keeps: [threadField] }, this.#options);
  }

  /** Call this when a checkpoint is stored. @throws {ThroughlineError} SEND_DENIED where a node would run next */
  afterStep(
    ref: SessionRef,
    entry: SessionEntry | null,
    step: {
      readonly config: RunConfig;
      readonly checkpoint: Pick<Checkpoint, "channel_values">;
      readonly metadata: CheckpointMetadata;
    },
  ): void {
    const { config, checkpoint, metadata } = step;
    if (metadata.source !== "loop" || !isOfRun(config)) return;
    if (Object.keys(checkpoint.channel_values).some(isTrigger))
      assertMaySend(ref, entry, this.#options.sendPolicy ?? null, keptOfRun);
  }
}

/** A run passes the writer for its streamed output. A program that reads or changes a state passes none. */
function isOfRun(config: RunConfig): boolean {
  return typeof (config as { readonly writer?: unknown }).writer === "function";
}

function isNested({ configurable }: RunConfig): boolean {
  return configurable !== undefined && "__pregel_read" in configurable;
}

/** Checks that no node of a thread waits, so that the input of the next run starts something new. */
async function isAtRest(thread: Thread): Promise<boolean> {
  await thread.view();
  const newest = thread.state.index.newest("");
  if (newest === undefined) return true;
  if (thread.state.index.writes("", newest.id).size > 0) return false;
  return ![...thread.state.channels(newest).keys()].some(isTrigger);
}

/** Recognizes channels that start a node while they have a value, by LangGraph's naming. */
function isTrigger(channel: string): boolean {
  return ["__start__", "__pregel_tasks", "branch:", "join:"].some((name) => channel.startsWith(name));
}
