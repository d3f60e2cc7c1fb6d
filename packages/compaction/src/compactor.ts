import {
  type Clock,
  hasErrorCode,
  type RecordIds,
  type SessionRef,
  type SessionStore,
  type Summarizer,
} from "@throughline/core";
import { calibratedFactor, type Calibration, type TokenCounter } from "@throughline/tokens/internal";
import { estimateContext } from "@throughline/tokens";
import type { ApplyOptions } from "./apply-compaction.ts";
import {
  abortedBefore,
  CompactionRun,
  type BackgroundCompaction,
  type CompactionResult,
} from "./background-compaction.ts";
import type { CompactionListener } from "./compaction-event.ts";
import {
  assertKnownOptions,
  untilAborted,
  optionKinds,
  portKinds,
  withSystemPorts,
  type OptionKind,
  type OptionTable,
  type SystemPorts,
} from "@throughline/core/internal";
import {
  compactionNeed,
  compactionSettingsTable,
  type CompactionNeed,
  type CompactionSettings,
} from "./compaction-settings.ts";
import { planOnce, type CompactionWay, type CompactionWork, type TokenMeasure } from "./compaction-work.ts";
import type { CompactionPlan, NothingToCompact } from "./plan-compaction.ts";

/** Configures `createCompactor`. */
export interface CompactorOptions {
  /** Holds the sessions and receives the compactions. */
  readonly store: SessionStore;
  /** Times the deadline of the summarizers. @default the system's clock */
  readonly clock?: Clock | undefined;
  /** Makes the ids of new records. @default the process's */
  readonly ids?: RecordIds | undefined;
  /**
   * Lists the summarizers in the order they are asked. A chain with fallback counts as one.
   * @default none: checkpoints, extractive and stub remain
   */
  readonly summarizers?: readonly Summarizer[] | undefined;
  /** Sets the summarizer that needs no model. @default none: the stub follows the models */
  readonly extractive?: Summarizer | null | undefined;
  /** Sets when a session is compacted, and how much of it stays. @default those of `CompactionSettings` */
  readonly settings?: CompactionSettings | undefined;
  /** Uses a checkpoint that covers half of the context without asking a model. @default true */
  readonly preferCheckpoint?: boolean | undefined;
  /**
   * Limits the time of all models together, in milliseconds. Afterwards sources without a model follow. @default 180000
   */
  readonly deadlineMs?: number | undefined;
  /** Names the folder of memory files, which a summary mentions. @default "memory" */
  readonly memoryFolder?: string | undefined;
  /**
   * Names the tool that the summary recommends for messages that are no longer shown; null if the agent has none.
   * @default null
   */
  readonly memorySearchTool?: string | null | undefined;
  /** Is called with each event; an error that it throws is ignored. @default none */
  readonly onEvent?: CompactionListener | undefined;
}

/** Describes the next request for a compaction. */
export interface CompactionRequest {
  /** Counts the tokens of messages and texts for the model. */
  readonly counter: TokenCounter;
  /** Corrects the estimates of the counter by the usage that earlier requests reported. */
  readonly calibration: Calibration;
  /** Holds the size of the context window in tokens; null and 0 stand for unknown. */
  readonly windowTokens: number | null;
  /**
   * Holds the tokens of the whole next request, system prompt and tools included. @default the tokens of the messages
   */
  readonly totalTokens?: number | null;
  /**
   * Limits the next request after the compaction, in tokens, for example as an overflow reported. @default the trigger
   */
  readonly targetTokens?: number | null;
  /** States why the session is compacted. @default "due" */
  readonly way?: CompactionWay;
  /** Ends this call with ABORTED. */
  readonly signal?: AbortSignal;
}

/** Holds the size of a session. */
export interface CompactionSize {
  /** Holds the tokens of the next request; null when unknown. */
  readonly tokens: number | null;
  /** Holds the size of the context window in tokens; null and 0 stand for unknown. */
  readonly windowTokens: number | null;
  /** Counts the messages of the context. The count decides when the window is unknown. */
  readonly messages: number;
}

/** Compacts the sessions of one store. */
export interface Compactor {
  /** Decides whether a compaction is due at a size. */
  need(size: CompactionSize): CompactionNeed;
  /** Returns the plan that `compact` would carry out now. Asks no summarizer and writes nothing. */
  plan(ref: SessionRef, request: CompactionRequest): Promise<CompactionPlan | NothingToCompact>;
  /**
   * Compacts now. A second call for the same session waits for the first and shares its result. The signal of a call
   * ends that call alone; the compaction stops when no call waits for it.
   * @throws {ThroughlineError} ABORTED, TURN_FENCED and what the store throws; never because a summarizer failed
   */
  compact(ref: SessionRef, request: CompactionRequest & ApplyOptions): Promise<CompactionResult>;
  /** Starts a summary while the conversation continues; the caller applies it between two calls. */
  begin(ref: SessionRef, request: CompactionRequest): BackgroundCompaction;
}

const { callback, filledText, flag, listOf, number, object, objectOf, objectWith, orNull, required, signal } =
  optionKinds;

const count = number({ min: 0 });

export const compactorTable: OptionTable<CompactorOptions> = {
  store: required(portKinds.store),
  clock: portKinds.clock,
  ids: portKinds.ids,
  summarizers: listOf(portKinds.summarizer),
  extractive: orNull(portKinds.summarizer),
  settings: objectOf(compactionSettingsTable),
  preferCheckpoint: flag,
  deadlineMs: number({ min: 1, max: 86_400_000 }),
  memoryFolder: filledText,
  memorySearchTool: orNull(filledText),
  onEvent: callback,
};

export const sizeTable: OptionTable<CompactionSize> = {
  tokens: required(orNull(count)),
  windowTokens: required(orNull(count)),
  messages: required(count),
};

const way: OptionKind = {
  expected: '"due", "asked", or an object with `checkpointId`',
  accepts: (value) =>
    value === "due" || value === "asked" || (object.accepts(value) && "checkpointId" in (value as object)),
};

export const requestTable: OptionTable<CompactionRequest> = {
  counter: required(objectWith("countText", "countMessages")),
  calibration: required(object),
  windowTokens: required(orNull(count)),
  totalTokens: orNull(count),
  targetTokens: orNull(count),
  way,
  signal,
};

export const compactTable: OptionTable<CompactionRequest & ApplyOptions> = {
  ...requestTable,
  turn: object,
  onMoved: callback,
};

interface SharedCompaction {
  readonly work: Promise<CompactionResult>;
  callers: number;
  /** Is called when no caller waits any longer. The work then stops, because no caller would use its result. */
  stop(): void;
}

/**
 * Creates a compactor for the sessions of a store. A summary replaces the older part of the context, and the log keeps
 * all of it.
 *
 * @throws {ThroughlineError} INPUT_INVALID for an option that is not known, has another type, or is out of range
 * @example
 * const compactor = createCompactor({ store, summarizers: [summarizer] });
 * const size = { tokens: 150_000, windowTokens: 200_000, messages: 80 };
 * if (compactor.need(size).due)
 *   await compactor.compact(ref, { counter, calibration, windowTokens: size.windowTokens, totalTokens: size.tokens });
 */
export function createCompactor(options: CompactorOptions): Compactor {
  assertKnownOptions<CompactorOptions>("createCompactor", options, compactorTable);
  return new StoreCompactor(withSystemPorts(options));
}

type WantedCompaction = CompactionRequest & ApplyOptions;

class StoreCompactor implements Compactor {
  readonly #options: CompactorOptions & SystemPorts;
  readonly #running = new Map<string, SharedCompaction>();
  readonly #begun = new Map<string, CompactionRun>();

  constructor(options: CompactorOptions & SystemPorts) {
    this.#options = options;
  }

  need(size: CompactionSize): CompactionNeed {
    assertKnownOptions<CompactionSize>("need", size, sizeTable, "size");
    return compactionNeed(size, this.#options.settings);
  }

  async plan(ref: SessionRef, request: CompactionRequest): Promise<CompactionPlan | NothingToCompact> {
    assertKnownOptions<CompactionRequest>("plan", request, requestTable, "request");
    return planOnce(workOf(this.#options, ref, request));
  }

  begin(ref: SessionRef, request: CompactionRequest): CompactionRun {
    assertKnownOptions<CompactionRequest>("begin", request, requestTable, "request");
    return this.#begin(ref, request);
  }

  #begin(ref: SessionRef, request: CompactionRequest): CompactionRun {
    const key = keyOf(ref);
    const known = this.#begun.get(key);
    if (known !== undefined) return known;
    const run = new CompactionRun(workOf(this.#options, ref, request), (over) => this.#letGo(key, over));
    this.#begun.set(key, run);
    return run;
  }

  async compact(ref: SessionRef, request: WantedCompaction): Promise<CompactionResult> {
    assertKnownOptions<WantedCompaction>("compact", request, compactTable, "request");
    const { signal = null } = request;
    for (;;) {
      abortedBefore(request.signal);
      const known = this.#running.get(keyOf(ref));
      const shared = known ?? this.#share(ref, request);
      shared.callers += 1;
      try {
        return await untilAborted(shared.work, signal);
      } catch (error) {
        // TURN_FENCED concerns the turn of the caller that started the work. The turn of this caller is still to be
        // tried.
        if (known === undefined || !hasErrorCode(error, "TURN_FENCED")) throw error;
      } finally {
        shared.callers -= 1;
        if (shared.callers === 0) shared.stop();
      }
    }
  }

  #share(ref: SessionRef, request: WantedCompaction): SharedCompaction {
    const key = keyOf(ref);
    const stopping = new AbortController();
    const forget = (): void => {
      if (this.#running.get(key) === shared) this.#running.delete(key);
    };
    const shared: SharedCompaction = {
      work: this.#compactFor(ref, request, stopping.signal).finally(forget),
      callers: 0,
      stop: () => {
        forget();
        stopping.abort();
      },
    };
    this.#running.set(key, shared);
    return shared;
  }

  async #compactFor(ref: SessionRef, request: WantedCompaction, signal: AbortSignal): Promise<CompactionResult> {
    const { turn } = request;
    const applied = { signal, ...(turn === undefined ? {} : { turn }) };
    const beside = this.#begun.get(keyOf(ref));
    if (beside !== undefined) {
      await untilAborted(beside.ready, signal);
      const result = await beside.apply(applied);
      // The background summary no longer fits the session. The request at hand has no plan yet, so it gets a new one.
      if (result.kind !== "superseded") return result;
    }
    const run = this.#begin(ref, { ...request, signal });
    try {
      await untilAborted(run.ready, signal);
      return await run.apply(applied);
    } finally {
      // A run that found an open turn must not be shared: the next caller has other sizes.
      this.#letGo(keyOf(ref), run);
    }
  }

  #letGo(key: string, run: CompactionRun): void {
    if (this.#begun.get(key) === run) this.#begun.delete(key);
  }
}

function keyOf({ namespace, agentId, key, archiveId }: SessionRef): string {
  return JSON.stringify([namespace, agentId, key, archiveId ?? null]);
}

function workOf(options: CompactorOptions & SystemPorts, ref: SessionRef, request: CompactionRequest): CompactionWork {
  const { windowTokens } = request;
  return {
    ...tokenMeasure(request.counter, request.calibration),
    store: options.store,
    ref,
    clock: options.clock,
    ids: options.ids,
    summarizers: options.summarizers ?? [],
    extractive: options.extractive ?? null,
    settings: options.settings ?? {},
    windowTokens: windowTokens === 0 ? null : windowTokens,
    totalTokens: request.totalTokens ?? null,
    targetTokens: request.targetTokens ?? null,
    way: request.way ?? "due",
    preferCheckpoint: options.preferCheckpoint ?? true,
    deadlineMs: options.deadlineMs ?? 180_000,
    memoryFolder: options.memoryFolder ?? "memory",
    memorySearchTool: options.memorySearchTool ?? null,
    signal: request.signal ?? null,
    onEvent: options.onEvent,
  };
}

export function tokenMeasure(counter: TokenCounter, calibration: Calibration): TokenMeasure {
  const { factor } = calibratedFactor(calibration, counter);
  return {
    countMessage: (message) => estimateContext({ messages: [message] }, { counter, calibration, actual: null }).tokens,
    // A part of a text is counted directly, because it has no message overhead.
    countText: (text) => Math.ceil(counter.countText(text) * factor),
  };
}
