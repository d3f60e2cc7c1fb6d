import type { RecordDraft, SessionRef, StoredRecord } from "@throughline/core";
import type { BeginOptions } from "./begin-turn.ts";
import type { Emit } from "./session-event.ts";
import type { SessionLog } from "./session-log.ts";
import type { SessionModel, SessionsOptions } from "./session-options.ts";
import type { ApprovalAnswers } from "./turn.ts";
import type { SharedParts } from "./shared-parts.ts";

export interface TurnInput {
  /** The field is null to resume a turn. */
  readonly drafts: (() => readonly RecordDraft[]) | null;
  readonly idempotencyKey: string | null;
  /** Is false for group messages that are not addressed to the agent. */
  readonly isMentioned: boolean;
  /** Holds the decisions on the calls that a resumed turn left open. */
  readonly approvals?: ApprovalAnswers | undefined;
  /** Is true when a reply that was cut off is continued rather than asked for again. */
  readonly continuesReply?: boolean | undefined;
  /** Begins the turn as a branch at another place than the head. */
  readonly branch?: Required<Pick<BeginOptions, "expect" | "move" | "leftResults">>;
}

export interface TurnHost {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly model: SessionModel;
  readonly log: SessionLog;
  readonly options: SessionsOptions;
  readonly shared: SharedParts;
  readonly closing: AbortSignal;
  /** @throws {ThroughlineError} INPUT_INVALID */
  assertOpen(): void;
  /**
   * Registers the running turn: its events are emitted, its messages are collected, and closing the session aborts it.
   */
  enterTurn(controller: AbortController, emit: Emit | null): readonly StoredRecord[];
  leaveTurn(): void;
  /** Registers background work that closing the session waits for. */
  track(work: Promise<unknown>): void;
  /** Returns the id of the compaction whose summary comes first. */
  summaryId(): string | null;
  /** Opens another session with the same model and options. */
  openOther(ref: SessionRef, signal?: AbortSignal): Promise<TurnHost & { close(): Promise<void> }>;
}
