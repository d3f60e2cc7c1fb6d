import { chatCheckpointWriter, createCheckpointer } from "@throughline/checkpoint";
import { createCompactor } from "@throughline/compaction";
import { type Clock, hasErrorCode, type RecordIds, type SessionRef } from "@throughline/core";
import { systemClock, systemRandom, systemRecordIds, tellListener } from "@throughline/core/internal";
import { isSilentReply, mayBecomeSilent } from "@throughline/compaction/internal";
import { createTokenEstimator } from "@throughline/tokens";
import type { SessionRow, UserDeletion } from "@throughline/core/internal";
import type { AttachedTurn, AttachOptions } from "../attach-turn.ts";
import type { UsageReport } from "@throughline/usage";
import { OpenSessions } from "../open-sessions.ts";
import { processOwners } from "../process-owners.ts";
import type { SessionsOptions } from "../session-options.ts";
import type {
  DeleteSessionOptions,
  DeleteUserOptions,
  FindSessionOptions,
  ForkSessionOptions,
  OpenSessionOptions,
  RenameSessionOptions,
  SessionList,
  SessionName,
  SessionQuery,
  Sessions,
  SessionsUsageQuery,
  SessionsUser,
} from "../sessions.ts";
import { BackgroundCompactions } from "./background-compactions.ts";
import { checkpointStep } from "./checkpoint-step.ts";
import { checkOptions } from "./check-options.ts";
import { closeTurn } from "./close-turn.ts";
import { compactInFlight, compactionStep } from "./compaction-step.ts";
import { AgentSessionHandle, type AgentSession } from "./agent-session.ts";
import { SessionOperations } from "./session-operations.ts";
import { flushStep } from "./flush-step.ts";
import { replaceWithheldSummaries } from "./replace-withheld-summaries.ts";
import { SummaryRetries } from "./summary-retries.ts";
import { systemText } from "./system-text.ts";
import { keyOf, TurnMemory } from "./turn-memory.ts";
import type { AgentSessionsOptions } from "./whole-turn-options.ts";
import type { WholeTurnParts } from "./whole-turn-parts.ts";

/**
 * Gives access to the sessions of one store, whose turns flush memory, compact and create checkpoints automatically.
 */
export interface AgentSessions extends Sessions {
  open(session: SessionName, options?: OpenSessionOptions): Promise<AgentSession>;
}

/**
 * Creates sessions that run the whole path of a turn over a store. A due memory flush and a due compaction happen
 * before a call, and the next request shows the compaction. An overflow starts the same compaction. After the turn a
 * checkpoint is created in the background, and poor summaries are rewritten.
 *
 * @throws {ThroughlineError} INPUT_INVALID for an option that is unknown or has another type. CONFIG_INVALID for
 * settings out of range, and for combinations that could have no effect. CAPABILITY_UNSUPPORTED for a model with an
 * unknown API.
 */
export function createAgentSessions(options: AgentSessionsOptions): AgentSessions {
  checkOptions(options);
  return new OpenAgentSessions(options);
}

class OpenAgentSessions implements AgentSessions {
  readonly #parts: WholeTurnParts;
  readonly #sessions: OpenSessions<AgentSessionHandle>;
  readonly #retries: SummaryRetries;

  constructor(given: AgentSessionsOptions) {
    const { clock = systemClock, random = systemRandom, owners = processOwners(), ids = systemRecordIds } = given;
    const estimator = given.estimator ?? createTokenEstimator();
    const owner = `${owners.self} ${random.uuid().slice(0, 8)}`;
    this.#parts = partsOf({ ...given, clock, ids }, owner, (ref) => this.#refresh(ref));
    const { store, summarizers, model, retry = {}, compaction = {}, breakers = null } = given;
    const operations = new SessionOperations({ parts: this.#parts, estimator, breakers, limits: retry });
    this.#sessions = new OpenSessions(
      { ...sessionOptions(given, this.#parts), clock, random, owners, estimator },
      (parts, log) => new AgentSessionHandle(parts, log, operations),
      (windowTokens) =>
        compaction.inAdvance === false
          ? null
          : this.#parts.compactor.need({ tokens: null, windowTokens, messages: 0 }).triggerTokens,
      summarizers[0],
    );
    this.#retries = new SummaryRetries({
      store,
      clock,
      ids,
      summarizers,
      maxSummaryTokens: compaction.maxSummaryTokens,
      toolResultChars: compaction.toolResultChars,
      estimator,
      model,
      settings: retry,
      owner,
      listener: this.#parts.listener,
      sessions: () => this.#handles().map(({ ref }) => ref),
      onImproved: (ref) => this.#refresh(ref),
    });
  }

  get files(): Sessions["files"] {
    return this.#sessions.files;
  }

  async open(name: SessionName, options?: OpenSessionOptions): Promise<AgentSession> {
    const session = await this.#sessions.open(name, options);
    if (session.log.facts.hasOutdatedSummary) this.#parts.memory.markOutdated(session.ref);
    this.#retries.start(session.ref);
    return session;
  }

  find(session: SessionName, options?: FindSessionOptions): Promise<SessionRow | null> {
    return this.#sessions.find(session, options);
  }

  attach(session: SessionName, options?: AttachOptions): Promise<AttachedTurn | null> {
    return this.#sessions.attach(session, options);
  }

  list(query?: SessionQuery): Promise<SessionList> {
    return this.#sessions.list(query);
  }

  delete(session: SessionName, options?: DeleteSessionOptions): Promise<SessionRow | null> {
    return this.#sessions.delete(session, options);
  }

  deleteUser(user: SessionsUser, options?: DeleteUserOptions): Promise<UserDeletion> {
    return this.#sessions.deleteUser(user, options);
  }

  restore(archiveId: string): Promise<SessionRow> {
    return this.#sessions.restore(archiveId);
  }

  fork(session: SessionName, options?: ForkSessionOptions): Promise<SessionRow> {
    return this.#sessions.fork(session, options);
  }

  rename(session: SessionName, options: RenameSessionOptions): Promise<SessionRow> {
    return this.#sessions.rename(session, options);
  }

  usage(query?: SessionsUsageQuery): Promise<UsageReport> {
    return this.#sessions.usage(query);
  }

  async close(): Promise<void> {
    await this.#sessions.close();
    await Promise.all([this.#retries.stop(), this.#parts.background?.close()]);
    await this.#parts.checkpointer.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #handles(): readonly AgentSessionHandle[] {
    return this.#sessions.handles.filter(({ closing }) => !closing.aborted);
  }

  async #refresh(ref: SessionRef): Promise<void> {
    const key = keyOf(ref);
    await Promise.all(
      this.#handles().map(async (session) => {
        if (keyOf(session.ref) !== key) return;
        try {
          await session.refresh();
        } catch (error) {
          // The owner of that handle gets the error with its next turn. The other handles must be refreshed all the
          // same.
          if (!hasErrorCode(error, "SESSION_REPLACED")) throw error;
        }
      }),
    );
  }
}

type Filled = AgentSessionsOptions & { readonly clock: Clock; readonly ids: RecordIds };

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
  const { writers = [chatCheckpointWriter(model)], deadlineMs: writeMs, ...rest } = checkpoint;
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
  // Without a summarizer there is no model call to wait for. An extractive summary before the window is full would be
  // worse than the conversation itself.
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

function sessionOptions(options: AgentSessionsOptions, parts: WholeTurnParts): SessionsOptions {
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
