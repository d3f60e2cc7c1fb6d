import { chatCheckpointWriter, type CheckpointResult, createCheckpointer } from "@throughline/checkpoint";
import { createCompactor } from "@throughline/compaction";
import { type CompactionPlan, type NothingToCompact } from "@throughline/compaction/internal";
import { hasErrorCode, type SessionRef } from "@throughline/core";
import { tellListener } from "@throughline/core/internal";
import { systemClock, systemRandom, systemRecordIds } from "@throughline/core/node";
import { isSilentReply, mayBecomeSilent } from "@throughline/memory-flush";
import { createTokenEstimator } from "@throughline/tokens";
import { createSessions } from "../create-sessions.ts";
import { processOwners } from "../process-owners.ts";
import type { Session, Sessions } from "../session.ts";
import { SessionHandle } from "../session-handle.ts";
import { BackgroundCompactions } from "./background-compactions.ts";
import { checkpointStep } from "./checkpoint-step.ts";
import { checkOptions } from "./check-options.ts";
import { closeTurn } from "./close-turn.ts";
import { compactInFlight, compactionStep } from "./compaction-step.ts";
import type { AgentSessionStatus } from "./agent-status.ts";
import {
  SessionOperations,
  type ManualCompaction,
  type ManualCompactionOptions,
  type InheritResult,
  type InheritOptions,
  type SessionCheckpoints,
} from "./session-operations.ts";
import { flushStep } from "./flush-step.ts";
import { replaceWithheldSummaries } from "./replace-withheld-summaries.ts";
import { SummaryRetries } from "./summary-retries.ts";
import { systemText } from "./system-text.ts";
import { keyOf, TurnMemory } from "./turn-memory.ts";
import type { AgentSessionsOptions } from "./whole-turn-options.ts";
import type { WholeTurnParts } from "./whole-turn-parts.ts";

/** Sessions whose turns flush, compact and make checkpoints by themselves. */
export interface AgentSessions extends Sessions {
  /**
   * Compacts now, between turns, when there are more than four messages and a summary would be shorter; else `nothing`
   * with the reason, `busy` while a turn is open. The session knows of it when this resolves.
   * @throws {ThroughlineError} ABORTED, and what the store throws; never because a summariser failed
   */
  compact(session: Session, options?: ManualCompactionOptions): Promise<ManualCompaction>;
  /** What `compact` would replace. Asks nobody, writes nothing. */
  planCompaction(session: Session, options?: ManualCompactionOptions): Promise<CompactionPlan | NothingToCompact>;
  /** Makes a checkpoint now, whatever the triggers say; `nothing` with the reason. Never rejects for a writer. */
  checkpoint(session: Session): Promise<CheckpointResult>;
  /** The checkpoints of a session, also those of other processes, and where the next one stands. */
  checkpoints(session: Session, options?: { readonly signal?: AbortSignal }): Promise<SessionCheckpoints>;
  /**
   * Puts a checkpoint in the place of what it covers, without asking a model; one of another session in front of a
   * session that is empty.
   */
  inherit(session: Session, options?: InheritOptions): Promise<InheritResult>;
  /** Where the session stands: gauge, turn, compactions, checkpoints, flush, pending retries, summarisers. */
  status(session: Session): Promise<AgentSessionStatus>;
}

/**
 * The whole path of a turn over a store: a due flush is asked, a due compaction made and shown in the very next request,
 * an overflow cured by the same compaction, a checkpoint made afterwards in the background, poor summaries made again.
 * @throws {ThroughlineError} CONFIG_INVALID for settings out of range and combinations that could have no effect;
 *   CAPABILITY_UNSUPPORTED for a model whose API no messages can be made for
 */
export function createAgentSessions(options: AgentSessionsOptions): AgentSessions {
  checkOptions(options);
  return new OpenAgentSessions(options);
}

class OpenAgentSessions implements AgentSessions {
  readonly #parts: WholeTurnParts;
  readonly #sessions: Sessions;
  readonly #retries: SummaryRetries;
  readonly #open = new Set<SessionHandle>();
  readonly #hand: SessionOperations;

  constructor(given: AgentSessionsOptions) {
    const { clock = systemClock, random = systemRandom, owners = processOwners(), ids = systemRecordIds } = given;
    const estimator = given.estimator ?? createTokenEstimator();
    const owner = `${owners.self} ${random.uuid().slice(0, 8)}`;
    this.#parts = partsOf({ ...given, clock, ids }, owner, (ref) => this.#refresh(ref));
    this.#sessions = createSessions({ ...sessionOptions(given, this.#parts), clock, random, owners, estimator });
    const { store, summarizers, model, retry = {}, compaction = {}, breakers = null } = given;
    this.#hand = new SessionOperations({ parts: this.#parts, estimator, breakers, limits: retry });
    this.#retries = new SummaryRetries({
      store,
      clock,
      ids,
      summarizers,
      maxSummaryTokens: compaction.maxSummaryTokens,
      estimator,
      model,
      settings: retry,
      owner,
      listener: this.#parts.listener,
      sessions: () => this.#live().map(({ ref }) => ref),
      onImproved: (ref) => this.#refresh(ref),
    });
  }

  async open(address: string | SessionRef, options: { readonly signal?: AbortSignal } = {}): Promise<Session> {
    const session = await this.#sessions.open(address, options);
    if (session instanceof SessionHandle) {
      this.#open.add(session);
      if (session.log.facts.hasOutdatedSummary) this.#parts.memory.markOutdated(session.ref);
    }
    this.#retries.start();
    return session;
  }

  compact(session: Session, options: ManualCompactionOptions = {}): Promise<ManualCompaction> {
    return this.#hand.compact(session, options);
  }

  planCompaction(session: Session, options: ManualCompactionOptions = {}): Promise<CompactionPlan | NothingToCompact> {
    return this.#hand.plan(session, options);
  }

  checkpoint(session: Session): Promise<CheckpointResult> {
    return this.#hand.checkpoint(session);
  }

  checkpoints(session: Session, { signal }: { readonly signal?: AbortSignal } = {}): Promise<SessionCheckpoints> {
    return this.#hand.checkpoints(session, signal);
  }

  inherit(session: Session, options: InheritOptions = {}): Promise<InheritResult> {
    return this.#hand.inherit(session, options);
  }

  status(session: Session): Promise<AgentSessionStatus> {
    return this.#hand.status(session);
  }

  async close(): Promise<void> {
    await this.#sessions.close();
    await Promise.all([this.#retries.stop(), this.#parts.background?.close()]);
    await this.#parts.checkpointer.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Those that are still open; what was closed is forgotten. */
  #live(): readonly SessionHandle[] {
    for (const session of this.#open) if (session.closing.aborted) this.#open.delete(session);
    return [...this.#open];
  }

  async #refresh(ref: SessionRef): Promise<void> {
    const key = keyOf(ref);
    await Promise.all(
      this.#live().map(async (session) => {
        if (keyOf(session.ref) !== key) return;
        try {
          await session.refresh();
        } catch (error) {
          // Its owner hears of it with the next turn; it is no failure of what is shown to the others.
          if (!hasErrorCode(error, "SESSION_REPLACED")) throw error;
        }
      }),
    );
  }
}

type Filled = AgentSessionsOptions & Required<Pick<AgentSessionsOptions, "clock" | "ids">>;

function partsOf(options: Filled, owner: string, refresh: (ref: SessionRef) => Promise<void>): WholeTurnParts {
  const { store, clock, ids, model, summarizers, extractive = null, compaction = {}, checkpoint = {} } = options;
  const {
    preferCheckpoint,
    deadlineMs,
    memorySearchTool = null,
    background,
    backgroundPercent,
    ...settings
  } = compaction;
  const { writers = [chatCheckpointWriter(model.chat, model.modelId)], deadlineMs: writeMs, ...rest } = checkpoint;
  const { topicChanged = null, ...triggers } = rest;
  const { memoryFlush, tools = [], onEvent: listener = null } = options;
  const flush = memoryFlush ?? (tools.length === 0 ? null : {});
  const compactor = createCompactor({
    store,
    clock,
    ids,
    summarizers,
    extractive,
    settings,
    memorySearchTool,
    ...(flush?.memoryFolder === undefined ? {} : { memoryFolder: flush.memoryFolder }),
    ...(preferCheckpoint === undefined ? {} : { preferCheckpoint }),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    onEvent: (event) => tellListener(listener, event),
  });
  // Without a model there is nothing to wait for, and nothing better than the conversation itself.
  const isBeside = background !== false && settings.inAdvance !== false && summarizers.length > 0;
  const memory = new TurnMemory();
  return {
    store,
    clock,
    memory,
    replaceWithheldSummaries: replaceWithheldSummaries({ store, clock, ids, memory, extractive, listener }),
    listener,
    flush: flush?.enabled === false ? null : flush,
    compactor,
    compaction: settings,
    background: isBeside
      ? new BackgroundCompactions({ compactor, percent: backgroundPercent ?? 90, listener, refresh })
      : null,
    topicChanged: triggers.enabled === false ? null : topicChanged,
    checkpointer: createCheckpointer({
      store,
      clock,
      ids,
      owner,
      writers,
      settings: triggers,
      ...(writeMs === undefined ? {} : { deadlineMs: writeMs }),
      onEvent: (event) => tellListener(listener, event),
    }),
  };
}

function sessionOptions(options: AgentSessionsOptions, parts: WholeTurnParts): Parameters<typeof createSessions>[0] {
  const { flush, memory, listener } = parts;
  const { system = null, steps = [], showContextLine = false } = options;
  const before = flush === null ? [] : [flushStep(parts, flush)];
  return {
    ...options,
    system: systemText(system, parts, showContextLine),
    steps: [...before, compactionStep(parts), ...steps, checkpointStep(parts)],
    compact: compactInFlight(parts),
    beforeClose: closeTurn(parts),
    ...(flush === null ? {} : { holdBack: (text, isWhole) => (isWhole ? isSilentReply(text) : mayBecomeSilent(text)) }),
    onEvent: (event) => {
      memory.see(event);
      tellListener(listener, event);
    },
  };
}
