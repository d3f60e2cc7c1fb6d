import type { RecordDraft, SessionRef, StoredRecord } from "@throughline/core";
import type { Emit } from "./session-event.ts";
import type { SessionLog } from "./session-log.ts";
import type { SessionModel, SessionsOptions } from "./session-options.ts";
import type { SharedParts } from "./shared-parts.ts";

/** What a turn starts with: the user's message, or the last turn to resume. */
export interface TurnInput {
  /** Null to resume. */
  readonly drafts: (() => readonly RecordDraft[]) | null;
  /** The turn to resume. @default the last one of the log */
  readonly resumes: string | null;
  readonly idempotencyKey: string | null;
  /** False for words in a group that are not meant for the agent. */
  readonly isMentioned: boolean;
}

/** What a turn needs of the session it runs in. */
export interface TurnHost {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly model: SessionModel;
  readonly log: SessionLog;
  readonly options: SessionsOptions;
  readonly shared: SharedParts;
  /** Aborted when the session is closed. */
  readonly closing: AbortSignal;
  /** @throws {ThroughlineError} INPUT_INVALID */
  assertOpen(): void;
  /** A turn starts to run here: its events are emitted, its messages are collected, and closing aborts it. */
  enterTurn(controller: AbortController, emit: Emit | null): readonly StoredRecord[];
  leaveTurn(): void;
  /** Work in the background that closing waits for. */
  track(work: Promise<unknown>): void;
  /** The compaction whose summary comes first. */
  summaryId(): string | null;
  /** Another session with the same model and options. */
  openOther(ref: SessionRef, signal?: AbortSignal): Promise<TurnHost & { close(): Promise<void> }>;
}
