import type { Clock, RecordIds, SessionEntry, SessionRef, SessionStore } from "@throughline/core";
import type { CheckpointListener, NoCheckpointReason } from "./checkpoint-event.ts";
import type { CheckpointContent } from "./checkpoint-prompt.ts";
import { checkpointSettingsTable, type CheckpointMeasurement, type CheckpointSettings } from "./checkpoint-trigger.ts";
import type { CheckpointWriter } from "./checkpoint-writer.ts";
import { optionKinds, portKinds, type OptionTable } from "@throughline/core/internal";

/** Options of `createCheckpointer`. */
export interface CheckpointerOptions {
  /** Holds the sessions, and gets the checkpoints. */
  readonly store: SessionStore;
  /** Times the claims, the deadlines and the waits. @default the system's clock */
  readonly clock?: Clock;
  /** Makes the ids of new records. @default the process's */
  readonly ids?: RecordIds;
  /** Asked in this order until one answers. @default none: no checkpoint is made */
  readonly writers?: readonly CheckpointWriter[];
  /** When a checkpoint is due. @default those of `CheckpointSettings` */
  readonly settings?: CheckpointSettings;
  /** Of this process: no other that shares the store may have the same. */
  readonly owner: string;
  /** For all writers of one checkpoint. @default 600000 */
  readonly deadlineMs?: number;
  /** The longest reply of a writer, in tokens. @default 2000 */
  readonly maxOutputTokens?: number;
  /** Called with each event; what it throws is ignored. @default none */
  readonly onEvent?: CheckpointListener;
}

/** How the making of a checkpoint ended. */
export type CheckpointResult =
  /** The checkpoint is in the log. */
  | ({
      readonly kind: "written";
      /** The id of the checkpoint's record. */
      readonly recordId: string;
      /** The id of the last record that the checkpoint covers. */
      readonly coversToId: string;
    } & CheckpointContent)
  /** There is no new checkpoint, and nothing is wrong. */
  | {
      readonly kind: "nothing";
      /** Why there is none. */
      readonly reason: NoCheckpointReason;
    }
  /** Every writer failed, or the store did. */
  | {
      readonly kind: "failed";
      /** The error of the last writer, or of the store. */
      readonly cause: unknown;
    };

/** A checkpoint in the making: why it is due, and its end. */
export interface CheckpointRun {
  /** Which trigger fired. */
  readonly due: "tokens" | "messages" | "topic" | "asked";
  /** Never rejects. */
  readonly done: Promise<CheckpointResult>;
}

/** How full the window is after a turn. */
export type TurnSize = Omit<CheckpointMeasurement, "userMessages">;

/** Makes checkpoints of the sessions of a store, beside their turns. */
export interface Checkpointer {
  /**
   * The fields to set in the entry with the append that ends a turn: they count the messages of the user. One commit
   * does for both.
   */
  turnPatch(entry: SessionEntry, userMessages: number): Readonly<Record<string, unknown>>;
  /**
   * Begins a checkpoint when one is due after a turn, and returns at once; null when none is due. `entry` is as the
   * turn left it. Never waits, never holds a turn.
   * @throws {ThroughlineError} INPUT_INVALID for a size that is none
   */
  afterTurn(ref: SessionRef, entry: SessionEntry, size: TurnSize): CheckpointRun | null;
  /** Makes one now, whatever the triggers say. */
  make(ref: SessionRef, tokens: number | null): Promise<CheckpointResult>;
  /** Ends what is in the making and waits for it. */
  close(): Promise<void>;
}

const { callback, filledText, flag, listOf, number, objectOf, objectWith, orNull, required } = optionKinds;

/** The kinds of the options of `createCheckpointer`. */
export const checkpointerTable: OptionTable<CheckpointerOptions> = {
  store: required(portKinds.store),
  clock: portKinds.clock,
  ids: portKinds.ids,
  writers: listOf(objectWith("write")),
  settings: objectOf(checkpointSettingsTable),
  owner: required(filledText),
  deadlineMs: number({ min: 1, max: 86_400_000 }),
  maxOutputTokens: number({ min: 1 }),
  onEvent: callback,
};

/** The types of the input of `afterTurn` about a turn. */
export const turnSizeTable: OptionTable<TurnSize> = {
  tokens: required(orNull(number({ min: 0 }))),
  windowTokens: required(orNull(number({ min: 0 }))),
  topicChanged: flag,
};
