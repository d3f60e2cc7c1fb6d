import type { Clock, RecordIds, SessionEntry, SessionRef, SessionStore } from "@throughline/core";
import type { CheckpointListener, NoCheckpointReason } from "./checkpoint-event.ts";
import type { CheckpointContent } from "./checkpoint-prompt.ts";
import { checkpointSettingsTable, type CheckpointMeasurement, type CheckpointSettings } from "./checkpoint-trigger.ts";
import type { CheckpointWriter } from "./checkpoint-writer.ts";
import { optionKinds, portKinds, type OptionTable } from "@throughline/core/internal";

/** Sets the store, the writers and the limits of `createCheckpointer`. */
export interface CheckpointerOptions {
  /** Holds the sessions and receives the checkpoint records. */
  readonly store: SessionStore;
  /** Times the claims, the deadlines and the waits. @default the system's clock */
  readonly clock?: Clock | undefined;
  /** Creates the ids of new records. @default the process's */
  readonly ids?: RecordIds | undefined;
  /** Lists the writers in the order in which they are tried. @default none: no checkpoint is made */
  readonly writers?: readonly CheckpointWriter[] | undefined;
  /** Sets when a checkpoint is due. @default those of `CheckpointSettings` */
  readonly settings?: CheckpointSettings | undefined;
  /** Names this process. No other process that shares the store may use the same name. */
  readonly owner: string;
  /** Limits all writers of one checkpoint together, in milliseconds. @default 600000 */
  readonly deadlineMs?: number | undefined;
  /** Limits the reply of a writer, in tokens. @default 2000 */
  readonly maxOutputTokens?: number | undefined;
  /** Is called with each event; its exceptions are ignored. @default none */
  readonly onEvent?: CheckpointListener | undefined;
}

/** States how an attempt to make a checkpoint ended. */
export type CheckpointResult =
  /** The checkpoint is in the log. */
  | ({
      readonly kind: "written";
      /** Names the checkpoint's record. */
      readonly recordId: string;
      /** Names the last record that the checkpoint covers. */
      readonly coversToId: string;
    } & CheckpointContent)
  /** There is no new checkpoint, and no error occurred. */
  | {
      readonly kind: "nothing";
      /** States why there is none. */
      readonly reason: NoCheckpointReason;
    }
  /** Every writer failed, or the store failed. */
  | {
      readonly kind: "failed";
      /** Holds the error of the last writer, or of the store. */
      readonly cause: unknown;
    };

/** Describes a running checkpoint. */
export interface CheckpointRun {
  /** States which trigger fired. */
  readonly due: "tokens" | "messages" | "topic" | "asked";
  /** Resolves with the result and never rejects. */
  readonly done: Promise<CheckpointResult>;
}

/** Measures the window after a turn. */
export type TurnSize = Omit<CheckpointMeasurement, "userMessages">;

/** Makes checkpoints of the sessions of a store, in the background of their turns. */
export interface Checkpointer {
  /**
   * Returns the entry fields that count the user messages of a turn. Set them with the append that ends the turn, so
   * that one commit does both.
   */
  turnPatch(entry: SessionEntry, userMessages: number): Readonly<Record<string, unknown>>;
  /**
   * Starts a checkpoint if one is due after a turn, and returns at once. Null means that none is due. `entry` is the
   * entry at the end of the turn. The call never delays a turn.
   * @throws {ThroughlineError} INPUT_INVALID for an invalid size
   */
  afterTurn(ref: SessionRef, entry: SessionEntry, size: TurnSize): CheckpointRun | null;
  /** Makes a checkpoint now, whatever the triggers say. */
  make(ref: SessionRef, tokens: number | null): Promise<CheckpointResult>;
  /** Aborts running checkpoints and waits until they have ended. */
  close(): Promise<void>;
}

const { callback, filledText, flag, listOf, number, objectOf, objectWith, orNull, required } = optionKinds;

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

export const turnSizeTable: OptionTable<TurnSize> = {
  tokens: required(orNull(number({ min: 0 }))),
  windowTokens: required(orNull(number({ min: 0 }))),
  topicChanged: flag,
};
