import type { CheckpointEvent } from "@throughline/checkpoint";
import type { CompactionEvent } from "@throughline/compaction";
import type { SettingRepair } from "@throughline/compaction/internal";
import type { SessionRef } from "@throughline/core";
import type { FlushObservation } from "@throughline/memory-flush";
import type { ThresholdRepair } from "@throughline/memory-flush/internal";
import type { SessionTurnEvent } from "../session-event.ts";

/** What happens between the session and its memory. */
type FlushEvent =
  /** The agent is asked to store what it wants to keep; the percent is the configured one. */
  | {
      readonly name: "flush.asked";
      readonly ref: SessionRef;
      readonly turnId: string;
      readonly askedPercent: number;
      readonly why: "crossed" | "before-compaction";
    }
  /** It answered without a word for the user, whose question is put again. */
  | { readonly name: "flush.silent"; readonly ref: SessionRef; readonly turnId: string }
  | ({ readonly name: "flush.ended"; readonly ref: SessionRef; readonly turnId: string } & FlushObservation)
  /** The call failed before the agent could answer: it will be asked again. */
  | { readonly name: "flush.failed"; readonly ref: SessionRef }
  /** Thresholds that could not stay where they were; told once for each window. */
  | { readonly name: "flush.repaired"; readonly ref: SessionRef; readonly repairs: readonly ThresholdRepair[] };

type BackgroundEvent =
  /** A summary is being made while the conversation goes on; `compaction.applied` follows when it is in place. */
  | {
      readonly name: "compaction.begun";
      readonly ref: SessionRef;
      readonly turnId: string;
      readonly tokens: number;
      readonly triggerTokens: number;
    }
  /** Settings that the window did not leave as they were given; told once for each window. */
  | { readonly name: "compaction.repaired"; readonly ref: SessionRef; readonly repairs: readonly SettingRepair[] }
  /** It could not be put in place; what is due later is summarized then. */
  | { readonly name: "compaction.left"; readonly ref: SessionRef; readonly cause: unknown };

type RetryLoopEvent = {
  /** Summaries of one session could not be looked at; the others go on. */
  readonly name: "retry.error";
  readonly ref: SessionRef;
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
