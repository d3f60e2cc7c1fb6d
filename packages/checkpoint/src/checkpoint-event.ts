import type { SessionRef } from "@throughline/core";

/** Why there is no new checkpoint. */
export type NoCheckpointReason =
  /** There are no new messages since the last checkpoint, or since the last compaction. */
  | "nothing-new"
  /** Another process is making one. */
  | "in-the-making"
  /** There are no writers. */
  | "no-writers"
  /** Another process was faster, and none is due any more. */
  | "not-due"
  /** This process slept past its time, and another has taken the job over: what it made is dropped. */
  | "overtaken"
  /** The session was reset meanwhile: earlier messages do not belong to the new one. */
  | "reset";

/**
 * What happens to a session's checkpoints, for those who watch. After `started` comes one of `written`, `dropped` and
 * `failed`. A listener that throws disturbs nothing.
 */
export type CheckpointEvent =
  /** A checkpoint is due, and this process tries to make it. */
  | {
      readonly name: "checkpoint.started";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
      /** Which trigger fired. */
      readonly due: "tokens" | "messages" | "topic" | "asked";
      /** The threshold that was crossed, in percent of the window; null for other triggers. */
      readonly percent: number | null;
    }
  /** The checkpoint is in the log. */
  | {
      readonly name: "checkpoint.written";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
      /** The id of the checkpoint's record. */
      readonly recordId: string;
      /** The name of the writer that answered. */
      readonly writer: string;
      /** Of the call that wrote it, in tokens by kind; null where that is not known. */
      readonly usage: Readonly<Record<string, number>> | null;
    }
  /** It came to nothing, and nothing is wrong: another process has the job or was faster, or the session was reset. */
  | {
      readonly name: "checkpoint.dropped";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
      /** Why there is no new checkpoint. */
      readonly reason: NoCheckpointReason;
    }
  /** A writer failed or gave no usable reply; the next one is asked. */
  | {
      readonly name: "checkpoint.writer-failed";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
      /** The name of the writer. */
      readonly writer: string;
      /** What the writer threw, or a TypeError that says what is wrong with its reply. */
      readonly cause: unknown;
    }
  /** No checkpoint was made: every writer failed, or the store did. */
  | {
      readonly name: "checkpoint.failed";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
      /** The error of the last writer, or of the store. */
      readonly cause: unknown;
      /** The time before which no writer is asked again, UTC milliseconds. */
      readonly notBeforeMs: number;
    };

/** Receives what happens to the checkpoints of a store's sessions. */
export type CheckpointListener = (event: CheckpointEvent) => void;
