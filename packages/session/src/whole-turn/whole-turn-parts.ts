import type { Checkpointer } from "@throughline/checkpoint/internal";
import type { CompactionSettings, Compactor } from "@throughline/compaction";
import type { Clock, SessionStore } from "@throughline/core";
import type { MemoryFlushSettings } from "@throughline/compaction/internal";
import type { StepContext } from "../session-options.ts";
import type { BackgroundCompactions } from "./background-compactions.ts";
import type { TurnMemory } from "./turn-memory.ts";
import type { DetectTopicChange } from "./whole-turn-options.ts";
import type { WholeTurnListener } from "./whole-turn-event.ts";

export interface WholeTurnParts {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly memory: TurnMemory;
  readonly compactor: Compactor;
  readonly compaction: CompactionSettings;
  readonly checkpointer: Checkpointer;
  /** When the detection is null, topics do not trigger checkpoints. */
  readonly topicChanged: DetectTopicChange | null;
  /** Replaces a withheld summary without a model after a redaction, if one is withheld. */
  readonly replaceWithheldSummaries: (context: StepContext) => Promise<void>;
  /** When this is null, no compaction begins before it is due. */
  readonly background: BackgroundCompactions | null;
  /** When the settings are null, the agent is never asked to store notes. */
  readonly flush: MemoryFlushSettings | null;
  readonly listener: WholeTurnListener | null;
}
