import type { Checkpointer } from "@throughline/checkpoint";
import type { Compactor } from "@throughline/compaction";
import type { Clock, SessionStore } from "@throughline/core";
import type { MemoryFlushSettings } from "@throughline/memory-flush";
import type { TurnMemory } from "./turn-memory.ts";
import type { WholeTurnListener } from "./whole-turn-event.ts";

/** What the steps of a whole turn share. */
export interface WholeTurnParts {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly memory: TurnMemory;
  readonly compactor: Compactor;
  readonly checkpointer: Checkpointer;
  /** Null: nothing is asked. */
  readonly flush: MemoryFlushSettings | null;
  readonly listener: WholeTurnListener | null;
}
