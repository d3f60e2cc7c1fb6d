import type { CheckpointSettings } from "@throughline/checkpoint/internal";
import type { CheckpointWriter } from "@throughline/checkpoint";
import type { CompactionSettings } from "@throughline/compaction";
import type { MemoryFlushSettings, RetryLimits } from "@throughline/compaction/internal";
import type { RecordIds, Summarizer } from "@throughline/core";
import type { SessionsOptions, StepContext } from "../session-options.ts";
import type { SummarizerStateSource } from "./agent-status.ts";
import type { WholeTurnListener } from "./whole-turn-event.ts";

/** What a topic detection can read after a turn: the session, its size, and `records()`, those of the window. */
export type TopicContext = Pick<StepContext, "ref" | "sessionId" | "turnId" | "gauge" | "signal" | "records">;

/** Whether the conversation has turned to another topic in the turn that just ended. */
export type DetectTopicChange = (context: TopicContext) => boolean | Promise<boolean>;

/** When checkpoints are made, and by which writers. */
export interface WholeTurnCheckpoint extends CheckpointSettings {
  /** Asked in this order; a cheaper model goes first. @default the session's model */
  readonly writers?: readonly CheckpointWriter[];
  /** For one checkpoint. @default 600000 */
  readonly deadlineMs?: number;
  /**
   * Called after each turn, in the background. Where it gives true and the context has `minTokensForGen` tokens, a checkpoint
   * is due. One that throws is a `step.failed` event, and the other triggers decide. @default none: topics are no trigger
   */
  readonly topicChanged?: DetectTopicChange;
}

/** When and how the context is compacted. */
interface WholeTurnCompaction extends CompactionSettings {
  /** Whether a checkpoint that covers half of the context is taken without asking a model. @default true */
  readonly preferCheckpoint?: boolean;
  /** Whether a summary may be begun beside the turns, before it is due. @default true */
  readonly background?: boolean;
  /** Of the size at which a compaction is due. @default 90 */
  readonly backgroundPercent?: number;
  /** For all summarizers together. @default 180000 */
  readonly deadlineMs?: number;
  /** The tool that a compaction names for reading messages that are no longer shown. @default none */
  readonly memorySearchTool?: string | null;
}

/** When failed summaries are tried again. */
export interface RetrySettings extends RetryLimits {
  /** 0 switches it off. @default 60 */
  readonly intervalSeconds?: number;
}

/** Sessions with everything around their turns. */
export interface AgentSessionsOptions extends Omit<
  SessionsOptions,
  "compact" | "beforeClose" | "holdBack" | "onEvent"
> {
  /**
   * Who writes summaries, in this order; a chain with fallback counts as one. The conversation goes to no one else. Empty:
   * checkpoints, `extractive` and a note of what is missing remain.
   */
  readonly summarizers: readonly Summarizer[];
  /** The one that needs no model. @default none */
  readonly extractive?: Summarizer | null;
  /** Whoever keeps the breakers of the summarizers, for `status`. @default none */
  readonly breakers?: SummarizerStateSource;
  /** When and how the context is compacted. @default the settings of the package `compaction` */
  readonly compaction?: WholeTurnCompaction;
  /** When checkpoints are made, and by whom. @default the settings of the package `checkpoint` */
  readonly checkpoint?: WholeTurnCheckpoint;
  /** At which sizes the agent is asked to store notes. @default on where there are tools */
  readonly memoryFlush?: MemoryFlushSettings;
  /** Summaries that no model wrote are made again in the background. */
  readonly retry?: RetrySettings;
  /** Whether the system prompt ends with a line that says how full the context is. @default false */
  readonly showContextLine?: boolean;
  /**
   * Source of the ids of records that compactions and checkpoints append.
   *
   * @default by the system's clock and randomness
   */
  readonly ids?: RecordIds;
  /** Called with the events of sessions, compactions, checkpoints and flushes. @default none */
  readonly onEvent?: WholeTurnListener;
}
