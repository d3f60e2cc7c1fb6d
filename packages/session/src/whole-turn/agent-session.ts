import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import type { CheckpointResult } from "@throughline/checkpoint/internal";
import type { CompactionPlan, NothingToCompact } from "@throughline/compaction/internal";
import type { Session } from "../session.ts";
import type { OpenParts } from "../open-handle.ts";
import { SessionHandle } from "../session-handle.ts";
import type { SessionLog } from "../session-log.ts";
import type { AgentSessionStatus } from "./agent-status.ts";
import type {
  InheritOptions,
  InheritResult,
  ManualCompaction,
  ManualCompactionOptions,
  SessionCheckpoints,
  SessionOperations,
} from "./session-operations.ts";

/** Represents a session whose turns flush memory, compact and create checkpoints automatically. */
export interface AgentSession extends Session {
  /**
   * Compacts now, between turns, when the session has more than four messages and a summary would be shorter. Otherwise
   * the result is `nothing` with the reason, or `busy` while a turn is open. The next turn starts with the summary.
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED, SESSION_REPLACED, ABORTED, and what the store throws;
   *   never because a summarizer failed
   */
  compact(options?: ManualCompactionOptions): Promise<ManualCompaction>;
  /**
   * Returns what `compact` would replace. Calls no model and writes no record.
   * @throws {ThroughlineError} as `compact`
   */
  planCompaction(options?: ManualCompactionOptions): Promise<CompactionPlan | NothingToCompact>;
  /**
   * Creates a checkpoint now, regardless of the triggers. The result is `nothing` with the reason when there is no
   * writer or no new message.
   * @throws {ThroughlineError} SESSION_CLOSED, SESSION_REPLACED, and what the store throws; never because a writer
   *   failed
   */
  checkpoint(): Promise<CheckpointResult>;
  /**
   * Lists the checkpoints of the session, including those of other processes, and states when the next one is due.
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED, SESSION_REPLACED, ABORTED, and what the store throws
   */
  checkpoints(options?: { readonly signal?: AbortSignal | undefined }): Promise<SessionCheckpoints>;
  /**
   * Replaces the messages that a checkpoint covers by the checkpoint, without calling a model. With `from`, puts a
   * checkpoint of another session in front of this one, which must be empty.
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED, SESSION_REPLACED, ABORTED, and what the store throws
   */
  inherit(options?: InheritOptions): Promise<InheritResult>;
  /**
   * Returns the state of the session: gauge, turn, compactions, checkpoints, flush, pending retries, summarizers.
   * @throws {ThroughlineError} SESSION_CLOSED, SESSION_REPLACED, and what the store throws
   */
  status(): Promise<AgentSessionStatus>;
}

const { filledText, number, object, signal: signalKind } = optionKinds;

export const compactionTable: OptionTable<ManualCompactionOptions> = {
  windowTokens: number({ min: 1 }),
  signal: signalKind,
};

export const checkpointsTable: OptionTable<{ readonly signal?: AbortSignal }> = { signal: signalKind };

export const inheritTable: OptionTable<InheritOptions> = { from: object, checkpointId: filledText, signal: signalKind };

export class AgentSessionHandle extends SessionHandle implements AgentSession {
  readonly #operations: SessionOperations;

  constructor(parts: OpenParts, log: SessionLog, operations: SessionOperations) {
    super(parts, log);
    this.#operations = operations;
  }

  async compact(options: ManualCompactionOptions = {}): Promise<ManualCompaction> {
    assertKnownOptions<ManualCompactionOptions>("compact", options, compactionTable);
    this.assertOpen();
    return this.#operations.compact(this, options);
  }

  async planCompaction(options: ManualCompactionOptions = {}): Promise<CompactionPlan | NothingToCompact> {
    assertKnownOptions<ManualCompactionOptions>("planCompaction", options, compactionTable);
    this.assertOpen();
    return this.#operations.plan(this, options);
  }

  async checkpoint(): Promise<CheckpointResult> {
    this.assertOpen();
    return this.#operations.checkpoint(this);
  }

  async checkpoints(options: { readonly signal?: AbortSignal } = {}): Promise<SessionCheckpoints> {
    assertKnownOptions("checkpoints", options, checkpointsTable);
    this.assertOpen();
    return this.#operations.checkpoints(this, options.signal);
  }

  async inherit(options: InheritOptions = {}): Promise<InheritResult> {
    assertKnownOptions<InheritOptions>("inherit", options, inheritTable);
    this.assertOpen();
    return this.#operations.inherit(this, options);
  }

  async status(): Promise<AgentSessionStatus> {
    this.assertOpen();
    return this.#operations.status(this);
  }
}
