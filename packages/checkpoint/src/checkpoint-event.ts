import type { SessionRef } from "@throughline/core";

/** What happens to a session's checkpoints, for those who watch. A listener that throws disturbs nothing. */
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
    }
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

/** Tells a listener, whose errors are its own. */
export function tell(listener: CheckpointListener | undefined, event: CheckpointEvent): void {
  try {
    listener?.(event);
  } catch {
    // Events inform; a listener that fails must not undo what has been done.
  }
}
