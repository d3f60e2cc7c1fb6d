import type { CheckpointEvent } from "@throughline/checkpoint/internal";
import type {
  CompactionEvent,
  FlushObservation,
  SettingRepair,
  ThresholdRepair,
} from "@throughline/compaction/internal";
import type { SessionRef } from "@throughline/core";
import type { SessionTurnEvent } from "../session-event.ts";

/** Describes the events of the memory flush. */
type FlushEvent =
  /** Reports that the agent is asked to store notes. */
  | {
      readonly name: "flush.asked";
      /** Names the session whose agent is asked. */
      readonly ref: SessionRef;
      /** Holds the id of the turn in which the agent is asked. */
      readonly turnId: string;
      /** Holds the configured percentage of the window, 1 to 100. */
      readonly askedPercent: number;
      /**
       * States the reason. `crossed`: the threshold was reached. `before-compaction`: a compaction is due and the agent
       * was not asked yet.
       */
      readonly why: "crossed" | "before-compaction";
    }
  /** Reports that the agent answered without text for the user, so the user's question is asked again. */
  | {
      readonly name: "flush.silent";
      /** Names the session whose agent was asked. */
      readonly ref: SessionRef;
      /** Holds the id of the turn in which the agent was asked. */
      readonly turnId: string;
    }
  /** Reports that the agent answered. The observation states what it wrote. */
  | ({
      readonly name: "flush.ended";
      /** Names the session whose agent was asked. */
      readonly ref: SessionRef;
      /** Holds the id of the turn in which the agent was asked. */
      readonly turnId: string;
    } & FlushObservation)
  /** Reports that the call failed before the agent could answer. The agent will be asked again. */
  | {
      readonly name: "flush.failed";
      /** Names the session whose agent was asked. */
      readonly ref: SessionRef;
    }
  /** Reports thresholds that were moved because the window required it. Emitted once for each window. */
  | {
      readonly name: "flush.repaired";
      /** Names the session whose thresholds were moved. */
      readonly ref: SessionRef;
      /** Lists the moved thresholds, with the reason of each. */
      readonly repairs: readonly ThresholdRepair[];
    };

/** Describes the events of summaries that are created beside the turns. */
type BackgroundEvent =
  /**
   * Reports that a summary is being created while the conversation continues; `compaction.applied` follows when it is
   * applied.
   */
  | {
      readonly name: "compaction.begun";
      /** Names the session that is summarized. */
      readonly ref: SessionRef;
      /** Holds the id of the turn in which the summary was begun. */
      readonly turnId: string;
      /** Holds the size of the context when the summary was begun, in tokens. */
      readonly tokens: number;
      /** Holds the size at which the compaction will be due, in tokens. */
      readonly triggerTokens: number;
    }
  /** Reports settings that were changed because the window required it. Emitted once for each window. */
  | {
      readonly name: "compaction.repaired";
      /** Names the session whose settings were changed. */
      readonly ref: SessionRef;
      /** Lists the changed settings, with the reason of each. */
      readonly repairs: readonly SettingRepair[];
    }
  /** Reports that the summary could not be applied. A later compaction summarizes the messages when it is due. */
  | {
      readonly name: "compaction.left";
      /** Names the session that was summarized. */
      readonly ref: SessionRef;
      /** Holds the error. */
      readonly cause: unknown;
    };

/** Describes the events of the loop that rewrites summaries. */
type RetryLoopEvent = {
  /** Reports that the summaries of one session could not be checked. The loop continues with the other sessions. */
  readonly name: "retry.error";
  /** Names the session whose summaries could not be checked. */
  readonly ref: SessionRef;
  /** Holds the error of the store. */
  readonly cause: unknown;
};

/** Describes every event of a whole turn. */
export type WholeTurnEvent =
  | SessionTurnEvent
  | CompactionEvent
  | CheckpointEvent
  | FlushEvent
  | BackgroundEvent
  | RetryLoopEvent;

/** Receives each event of a whole turn. */
export type WholeTurnListener = (event: WholeTurnEvent) => void;
