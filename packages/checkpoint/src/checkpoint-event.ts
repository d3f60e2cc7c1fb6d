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
  | {
      readonly name: "checkpoint.started";
      readonly ref: SessionRef;
      readonly due: "tokens" | "messages" | "topic" | "asked";
      readonly percent: number | null;
    }
  | {
      readonly name: "checkpoint.written";
      readonly ref: SessionRef;
      readonly recordId: string;
      readonly writer: string;
      /** Of the call that wrote it, in tokens by kind; null where that is not known. */
      readonly usage: Readonly<Record<string, number>> | null;
    }
  /** It came to nothing, and nothing is wrong: another process has the job or was faster, or the session was reset. */
  | { readonly name: "checkpoint.dropped"; readonly ref: SessionRef; readonly reason: NoCheckpointReason }
  | {
      readonly name: "checkpoint.writer-failed";
      readonly ref: SessionRef;
      readonly writer: string;
      readonly cause: unknown;
    }
  | {
      readonly name: "checkpoint.failed";
      readonly ref: SessionRef;
      readonly cause: unknown;
      readonly notBeforeMs: number;
    };

export type CheckpointListener = (event: CheckpointEvent) => void;
