import type { Checkpointer } from "@throughline/checkpoint";
import type { CompactionSettings, Compactor } from "@throughline/compaction";
import type { Clock, SessionStore } from "@throughline/core";
import type { MemoryFlushSettings } from "@throughline/compaction/internal";
import type { StepContext } from "../session-options.ts";
import type { BackgroundCompactions } from "./background-compactions.ts";
import type { TurnMemory } from "./turn-memory.ts";
import type { DetectTopicChange } from "./whole-turn-options.ts";
import type { WholeTurnListener } from "./whole-turn-event.ts";

/** What the steps of a whole turn share. */
export interface WholeTurnParts {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly memory: TurnMemory;
  readonly compactor: Compactor;
  readonly compaction: CompactionSettings;
  readonly checkpointer: Checkpointer;
  /** Null: topics are no trigger of checkpoints. */
  readonly topicChanged: DetectTopicChange | null;
  /** Makes what a redaction withheld again without a model, when it was. */
  readonly replaceWithheldSummaries: (context: StepContext) => Promise<void>;
  /** Null: no compaction begins before it is due. */
  readonly background: BackgroundCompactions | null;
  /** Null: nothing is asked. */
  readonly flush: MemoryFlushSettings | null;
  readonly listener: WholeTurnListener | null;
}
