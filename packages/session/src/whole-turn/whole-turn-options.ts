import type { CheckpointSettings } from "@throughline/checkpoint/internal";
import type { CheckpointWriter } from "@throughline/checkpoint";
import type { CompactionSettings } from "@throughline/compaction";
import type { MemoryFlushSettings, RetryLimits } from "@throughline/compaction/internal";
import type { RecordIds, Summarizer } from "@throughline/core";
import type { SessionsOptions, StepContext } from "../session-options.ts";
import type { SummarizerStateSource } from "./agent-status.ts";
import type { WholeTurnListener } from "./whole-turn-event.ts";

/** Gives a topic detection access to the session after a turn: its address, its size, and the records of the window. */
type TopicContext = Pick<StepContext, "ref" | "sessionId" | "turnId" | "gauge" | "signal" | "records">;

/** Decides whether the conversation turned to another topic in the turn that just ended. */
export type DetectTopicChange = (context: TopicContext) => boolean | Promise<boolean>;

/** Sets when checkpoints are created, and by which writers. */
interface WholeTurnCheckpoint extends CheckpointSettings {
  /**
   * Lists the writers in the order in which they are tried; a cheaper model goes first.
   * @default the session's model
   */
  readonly writers?: readonly CheckpointWriter[];
  /** Limits the time for one checkpoint, in milliseconds. @default 600000 */
  readonly deadlineMs?: number;
  /**
   * Runs after each turn, in the background. When it returns true and the context has `minTokensForGen` tokens, a
   * checkpoint is due. An error becomes a `step.failed` event, and the other triggers decide.
   * @default none: topics are no trigger
   */
  readonly topicChanged?: DetectTopicChange;
}

/** Sets when and how the context is compacted. */
interface WholeTurnCompaction extends CompactionSettings {
  /** Uses a checkpoint that covers half of the context without asking a model. @default true */
  readonly preferCheckpoint?: boolean;
  /** Allows a summary to be begun beside the turns, before it is due. @default true */
  readonly background?: boolean;
  /** Sets when a background summary begins, in percent of the size at which a compaction is due. @default 90 */
  readonly backgroundPercent?: number;
  /** Limits the time for all summarizers together, in milliseconds. @default 180000 */
  readonly deadlineMs?: number;
  /** Names the tool that a compaction recommends for reading messages that are no longer shown. @default none */
  readonly memorySearchTool?: string | null;
}

/** Sets when failed summaries are tried again. */
export interface RetrySettings extends RetryLimits {
  /** Sets the interval of the retries, in seconds; 0 turns them off. @default 60 */
  readonly intervalSeconds?: number;
}

/** Sets the sessions, the memory and the compaction of `createAgentSessions`. */
export interface AgentSessionsOptions extends Omit<
  SessionsOptions,
  "compact" | "beforeClose" | "holdBack" | "onEvent"
> {
  /**
   * Lists the summarizers in the order in which they are tried; a chain with fallback counts as one. The conversation
   * is sent to no other summarizer. When the list is empty, checkpoints, `extractive` and a note of what is missing
   * remain.
   */
  readonly summarizers: readonly Summarizer[];
  /** Writes a summary without a model. @default none */
  readonly extractive?: Summarizer | null | undefined;
  /** Reports the states of the summarizers' breakers, for `status`. @default none */
  readonly breakers?: SummarizerStateSource | undefined;
  /** Sets when and how the context is compacted. @default the settings of the package `compaction` */
  readonly compaction?: WholeTurnCompaction | undefined;
  /** Sets when checkpoints are created, and by which writers. @default the settings of the package `checkpoint` */
  readonly checkpoint?: WholeTurnCheckpoint | undefined;
  /** Sets at which sizes the agent is asked to store notes. @default on when the agent has tools */
  readonly memoryFlush?: MemoryFlushSettings | undefined;
  /** Sets how summaries that no model wrote are rewritten in the background. */
  readonly retry?: RetrySettings | undefined;
  /** Adds a line to the system prompt that states how full the context is. @default false */
  readonly showContextLine?: boolean | undefined;
  /**
   * Generates the ids of records that compactions and checkpoints append.
   * @default by the system's clock and randomness
   */
  readonly ids?: RecordIds | undefined;
  /** Receives the events of sessions, compactions, checkpoints and flushes. @default none */
  readonly onEvent?: WholeTurnListener | undefined;
}
