import type { CheckpointEvent } from "@throughline/checkpoint/internal";
import type {
  CompactionEvent,
  FlushObservation,
  SettingRepair,
  ThresholdRepair,
} from "@throughline/compaction/internal";
import type { SessionRef } from "@throughline/core";
import type { SessionTurnEvent } from "../session-event.ts";

/** What happens between the session and its memory. */
type FlushEvent =
  /** The agent is asked to store what it wants to keep; the percent is the configured one. */
  | {
      readonly name: "flush.asked";
      /** The session whose agent is asked. */
      readonly ref: SessionRef;
      /** The turn in which the agent is asked. */
      readonly turnId: string;
      /** The configured percentage of the window, 1 to 100. */
      readonly askedPercent: number;
      /**
       * `crossed`: the threshold was reached. `before-compaction`: a compaction is due and the agent was not asked
       * yet.
       */
      readonly why: "crossed" | "before-compaction";
    }
  /** It answered without a word for the user, whose question is put again. */
  | {
      readonly name: "flush.silent";
      /** The session whose agent is asked. */
      readonly ref: SessionRef;
      /** The turn in which the agent is asked. */
      readonly turnId: string;
    }
  /** The agent answered, and the observation states what it wrote. */
  | ({
      readonly name: "flush.ended";
      /** The session whose agent is asked. */
      readonly ref: SessionRef;
      /** The turn in which the agent is asked. */
      readonly turnId: string;
    } & FlushObservation)
  /** The call failed before the agent could answer: it will be asked again. */
  | {
      readonly name: "flush.failed";
      /** The session whose agent is asked. */
      readonly ref: SessionRef;
    }
  /** Thresholds that could not stay where they were; told once for each window. */
  | {
      readonly name: "flush.repaired";
      /** The session whose agent is asked. */
      readonly ref: SessionRef;
      /** The thresholds that were moved, with the reason of each. */
      readonly repairs: readonly ThresholdRepair[];
    };

/** What happens to a summary that is made beside the turns. */
type BackgroundEvent =
  /** A summary is being made while the conversation goes on; `compaction.applied` follows when it is in place. */
  | {
      readonly name: "compaction.begun";
      /** The session that is summarized. */
      readonly ref: SessionRef;
      /** The turn after which the summary was begun. */
      readonly turnId: string;
      /** The size of the context when the summary was begun. */
      readonly tokens: number;
      /** The size at which the compaction will be due. */
      readonly triggerTokens: number;
    }
  /** Settings that the window did not leave as they were given; told once for each window. */
  | {
      readonly name: "compaction.repaired";
      /** The session that is summarized. */
      readonly ref: SessionRef;
      /** The settings that were changed, with the reason of each. */
      readonly repairs: readonly SettingRepair[];
    }
  /** It could not be put in place; what is due later is summarized then. */
  | {
      readonly name: "compaction.left";
      /** The session that is summarized. */
      readonly ref: SessionRef;
      /** Why the summary could not be put in place. */
      readonly cause: unknown;
    };

/** What happens to the loop that makes summaries again. */
type RetryLoopEvent = {
  /** Summaries of one session could not be looked at; the others go on. */
  readonly name: "retry.error";
  /** The session whose summaries could not be looked at. */
  readonly ref: SessionRef;
  /** The error of the store. */
  readonly cause: unknown;
};

/** Every step of a whole turn. */
export type WholeTurnEvent =
  | SessionTurnEvent
  | CompactionEvent
  | CheckpointEvent
  | FlushEvent
  | BackgroundEvent
  | RetryLoopEvent;

/** Called with each event of a whole turn. */
export type WholeTurnListener = (event: WholeTurnEvent) => void;
