import type { SessionRef } from "@throughline/core";

/** States why there is no new checkpoint. */
export type NoCheckpointReason =
  /** No message is newer than the last checkpoint or the last compaction. */
  | "nothing-new"
  /** Another process is making a checkpoint. */
  | "in-the-making"
  /** No writers are configured. */
  | "no-writers"
  /** Another process wrote a checkpoint first, so none is due now. */
  | "not-due"
  /** This process exceeded its claim and another process took over, so the result is dropped. */
  | "overtaken"
  /** The session was reset meanwhile, and the earlier messages do not belong to the new session. */
  | "reset";

/**
 * Describes a step in the life of a checkpoint, for observers. Each `started` is followed by one of `written`,
 * `dropped` and `failed`. Exceptions of a listener are ignored.
 */
export type CheckpointEvent =
  /** A checkpoint is due, and this process tries to make it. */
  | {
      readonly name: "checkpoint.started";
      /** States the address of the session in the store. */
      readonly ref: SessionRef;
      /** States which trigger fired. */
      readonly due: "tokens" | "messages" | "topic" | "asked";
      /** States the threshold that was crossed, in percent of the window. Null for other triggers. */
      readonly percent: number | null;
    }
  /** The checkpoint is in the log. */
  | {
      readonly name: "checkpoint.written";
      /** States the address of the session in the store. */
      readonly ref: SessionRef;
      /** Names the checkpoint's record. */
      readonly recordId: string;
      /** Names the writer that answered. */
      readonly writer: string;
      /**
       * Counts the tokens of the call that wrote the checkpoint, by kind. Null when the writer does not report them.
       */
      readonly usage: Readonly<Record<string, number>> | null;
    }
  /** No checkpoint was made, without an error: another process has the claim or was first, or the session was reset. */
  | {
      readonly name: "checkpoint.dropped";
      /** States the address of the session in the store. */
      readonly ref: SessionRef;
      /** States why there is no new checkpoint. */
      readonly reason: NoCheckpointReason;
    }
  /** A writer failed or returned no usable reply. The next writer is asked. */
  | {
      readonly name: "checkpoint.writer-failed";
      /** States the address of the session in the store. */
      readonly ref: SessionRef;
      /** Names the writer. */
      readonly writer: string;
      /** Holds the error of the writer, or a TypeError that states the problem of its reply. */
      readonly cause: unknown;
    }
  /** No checkpoint was made, because every writer failed or the store failed. */
  | {
      readonly name: "checkpoint.failed";
      /** States the address of the session in the store. */
      readonly ref: SessionRef;
      /** Holds the error of the last writer, or of the store. */
      readonly cause: unknown;
      /** States the time before which no writer is asked again, in UTC milliseconds. */
      readonly notBeforeMs: number;
    };

/** Receives the checkpoint events of all sessions of a store. */
export type CheckpointListener = (event: CheckpointEvent) => void;
