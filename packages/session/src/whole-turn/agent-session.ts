import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import type { CheckpointResult } from "@throughline/checkpoint/internal";
import type { CompactionPlan, NothingToCompact } from "@throughline/compaction/internal";
import type { Session } from "../session.ts";
import { SessionHandle, type OpenParts } from "../session-handle.ts";
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

/** A session whose turns flush, compact and make checkpoints by themselves. */
export interface AgentSession extends Session {
  /**
   * Compacts now, between turns, when there are more than four messages and a summary would be shorter; else `nothing` with
   * the reason, `busy` while a turn is open. The next turn starts with the summary.
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED, SESSION_REPLACED, ABORTED, and what the store throws; never
   *   because a summarizer failed
   */
  compact(options?: ManualCompactionOptions): Promise<ManualCompaction>;
  /**
   * States what `compact` would replace. Calls no model and writes nothing.
   * @throws {ThroughlineError} as `compact`
   */
  planCompaction(options?: ManualCompactionOptions): Promise<CompactionPlan | NothingToCompact>;
  /**
   * Makes a checkpoint now, whatever the triggers say; `nothing` with the reason when there is nothing new.
   * @throws {ThroughlineError} SESSION_CLOSED, SESSION_REPLACED, and what the store throws; never because a writer failed
   */
  checkpoint(): Promise<CheckpointResult>;
  /**
   * Lists the checkpoints of the session, also those of other processes, and states when the next one is due.
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED, SESSION_REPLACED, ABORTED, and what the store throws
   */
  checkpoints(options?: { readonly signal?: AbortSignal }): Promise<SessionCheckpoints>;
  /**
   * Puts a checkpoint in the place of what it covers, without calling a model. With `from`, puts a checkpoint of another
   * session in front of this one, which must be empty.
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED, SESSION_REPLACED, ABORTED, and what the store throws
   */
  inherit(options?: InheritOptions): Promise<InheritResult>;
  /**
   * States where the session stands: gauge, turn, compactions, checkpoints, flush, pending retries, summarizers.
   * @throws {ThroughlineError} SESSION_CLOSED, SESSION_REPLACED, and what the store throws
   */
  status(): Promise<AgentSessionStatus>;
}

const { filledText, number, object, signal: signalKind } = optionKinds;

/** The kinds of the options of `compact`. */
export const compactionTable: OptionTable<ManualCompactionOptions> = {
  windowTokens: number({ min: 1 }),
  signal: signalKind,
};

/** The kinds of the options of `checkpoints`. */
export const checkpointsTable: OptionTable<{ readonly signal?: AbortSignal }> = { signal: signalKind };

/** The kinds of the options of `inherit`. */
export const inheritTable: OptionTable<InheritOptions> = { from: object, checkpointId: filledText, signal: signalKind };

/** The handle of an agent's session. */
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
