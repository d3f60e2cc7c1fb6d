import type { StoredRecord } from "@throughline/core";
import {
  assertArgument,
  assertKnownOptions,
  optionKinds,
  runInSlices,
  runSteps,
  type Steps,
} from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import { GrowingContext } from "./growing-context.ts";
import { GrowingReplay } from "./growing-replay.ts";
import { GrowingWindow, windowTable, type HistoryWindow, type WindowedContext } from "./growing-window.ts";
import { openAiChatTable } from "./render-openai-chat.ts";
import { renderTable } from "./render-options.ts";
import type { HistoryTarget } from "./history-targets.ts";
import {
  providerMappings,
  targetNames,
  type TargetMessages,
  type TargetName,
  type TargetOptions,
} from "./provider-mappings.ts";
import { replayRules, systemOf, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";

/** Configures `createHistory`. */
export interface HistoryOptions extends RenderOptions, HistoryWindow {}

/** Renders a session's history while the log grows. Each rendering equals one that is built from all records. */
export interface History<Message = unknown> {
  /** Adds the next records, in order of seq. A main record becomes the head. */
  append(records: readonly StoredRecord[]): void;
  /** Sets the head after a rewind. */
  moveHead(headId: string | null): void;
  /**
   * Changes the limits, for another model or after an overflow. A limit that is not given stays. A result that was sent
   * shortened stays unchanged. A result that was sent whole and is now shortened unbinds the thinking after it.
   */
  setWindow(window: HistoryWindow): void;
  /**
   * Records that the last rendering was sent to a model. The way in which it shortened results stays in force from now
   * on.
   */
  markSent(): void;
  /**
   * Prepares the next `context` and `render` in slices of 20 ms. Use it for a session whose rendering would block the
   * process for too long. A call in the meantime does the rest at once.
   *
   * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION
   */
  prepare(): Promise<void>;
  /**
   * Returns the context of the next rendering. Record its `cut` and `truncations` with the call. A process that
   * continues the session passes them to `createHistory` as `recorded`.
   *
   * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION
   */
  context(): WindowedContext;
  /**
   * Returns the messages for the provider, with every repair.
   *
   * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION
   */
  render(): Rendering<Message>;
  /**
   * Returns the same messages without copying the list. It costs the same after 10,000 messages as after 10.
   *
   * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION
   */
  renderShared(): SharedRendering<Message>;
  /** Counts the work of this history so far. */
  readonly work: HistoryWork;
}

/**
 * Shares its beginning with earlier and later renderings. The messages are `first`, then the first `settledCount` of
 * `settled`, then `tail`. Messages in `settled` never change while more are appended. A new list replaces `settled` if
 * the beginning changes. Repairs and changed ids are computed when they are read.
 */
interface SharedRendering<Message = unknown> extends Omit<Rendering<Message>, "messages"> {
  /** Holds the system prompt if the provider expects it among the messages. */
  readonly first: readonly Message[];
  /**
   * Holds messages that stay unchanged while the history grows. Other renderings share this list, so do not modify it.
   */
  readonly settled: readonly Message[];
  /** Counts the messages of `settled` that belong to this rendering. */
  readonly settledCount: number;
  /** Holds the messages after the settled ones. A later rendering may change them. */
  readonly tail: readonly Message[];
}

/** Counts the work that a history has done. */
export interface HistoryWork {
  /** Counts the records that were read. */
  readonly recordsRead: number;
  /** Counts the messages whose content was read and checked. */
  readonly messagesCleaned: number;
  /** Counts the calls and results that were matched with each other. */
  readonly itemsPaired: number;
  /** Counts the turns that were converted into the provider's format. */
  readonly turnsMapped: number;
  /** Counts the messages in the lists that were returned. */
  readonly messagesListed: number;
}

/**
 * Creates a history for one provider. The next record of the same branch costs only its own work. A compaction, an
 * edit, another branch, a moved cut, or a record that changes earlier ones causes a full rebuild.
 *
 * @param target the name of the provider's format, or a target of `/targets`
 * @throws {ThroughlineError} INPUT_INVALID for a target or an option that is not known
 * @example
 * const history = createHistory("anthropic", {
 *   limit: { maxTokens, countTokens, recorded: cut },
 *   truncate: { maxChars },
 * });
 * history.append(records);
 * const { messages, system } = history.render();
 * // After the call: results that were shortened in it stay shortened. Record `cut` and `truncations` with the call.
 * history.markSent();
 * const { cut, truncations } = history.context();
 */
export function createHistory<Name extends TargetName>(
  target: Name,
  options?: HistoryWindow & TargetOptions<Name>,
): History<TargetMessages[Name]>;
export function createHistory<Message>(target: HistoryTarget<Message>, options?: HistoryOptions): History<Message>;
export function createHistory(target: TargetName | HistoryTarget, options: HistoryOptions = {}): History {
  const mapping = mappingOf(target, options);
  const growing = new GrowingContext();
  const window = new GrowingWindow(growing, options);
  const renderings = new GrowingRenderings(mapping, options);
  let lastSeq = 0;
  let renderedToSeq: number | null = null;
  let preparing: Steps<void> | null = null;
  /** Finishes work that started in slices, because no change may interleave with it. */
  const ready = (): void => {
    const steps = preparing;
    preparing = null;
    if (steps !== null) runSteps(steps);
  };
  return {
    prepare: async () => {
      ready();
      preparing = renderings.prepare(window, growing);
      await runInSlices(preparing);
    },
    append: (records) => {
      ready();
      for (const record of records) growing.append(record);
      lastSeq = records.at(-1)?.seq ?? lastSeq;
    },
    moveHead: (headId) => {
      ready();
      growing.moveHead(headId);
    },
    setWindow: (changed) => {
      ready();
      assertKnownOptions<HistoryWindow>("setWindow", changed, windowTable, "window");
      window.change(changed);
    },
    markSent: () => {
      ready();
      if (renderedToSeq !== null) window.markSent(renderedToSeq);
    },
    context: () => {
      ready();
      return window.context();
    },
    render: () => {
      ready();
      const rendering = renderings.next(window, growing);
      renderedToSeq = lastSeq;
      return renderings.listed(rendering);
    },
    renderShared: () => {
      ready();
      const rendering = renderings.next(window, growing);
      renderedToSeq = lastSeq;
      return rendering;
    },
    get work(): HistoryWork {
      return { recordsRead: growing.recordsRead, ...renderings.work() };
    },
  };
}

function mappingOf(target: TargetName | HistoryTarget, options: HistoryOptions): ProviderMapping<unknown> {
  const { oneOf, object, either } = optionKinds;
  const table = { ...(target === "openai" ? openAiChatTable : renderTable), ...windowTable };
  assertKnownOptions<HistoryOptions>("createHistory", options, table);
  assertArgument("createHistory", "target", target, either(oneOf(targetNames), object));
  return typeof target === "string" ? providerMappings[target](options) : target.mapping;
}

/** A replay is valid for one generation of the beginning and one receiving model. */
interface CurrentReplay {
  readonly generation: number;
  readonly target: Context["model"];
  readonly machine: GrowingReplay<unknown>;
}

function isSameModel(one: Context["model"], other: Context["model"]): boolean {
  return one?.provider === other?.provider && one?.modelId === other?.modelId;
}

class GrowingRenderings {
  private readonly mapping: ProviderMapping<unknown>;
  private readonly options: RenderOptions;
  private readonly past = { messagesCleaned: 0, itemsPaired: 0, turnsMapped: 0 };
  private messagesListed = 0;
  private replay: CurrentReplay | null = null;

  constructor(mapping: ProviderMapping<unknown>, options: RenderOptions) {
    this.mapping = mapping;
    this.options = options;
  }

  *prepare(window: GrowingWindow, growing: GrowingContext): Steps<void> {
    yield* window.update();
    const machine = this.machineFor(window, growing);
    yield* machine.append(window.messagesFrom(machine.taken));
    yield* machine.settleTurns();
  }

  next(window: GrowingWindow, growing: GrowingContext): SharedRendering {
    runSteps(this.prepare(window, growing));
    const machine = this.machineFor(window, growing);
    const replay = machine.render();
    const { settled, settledCount, tail } = replay;
    const { field, first } = systemOf(this.mapping, this.options);
    this.messagesListed += tail.length;
    return {
      system: field,
      first,
      settled,
      settledCount,
      tail,
      get repairs() {
        return replay.repairs;
      },
      get callIds() {
        return replay.callIds;
      },
      toolNames: replay.toolNames,
    };
  }

  /** Copies the shared lists, because the caller may modify its list. */
  listed(shared: SharedRendering): Rendering<unknown> {
    const { system, first, settled, settledCount, tail, toolNames } = shared;
    const begun = joined(settled, settledCount, tail);
    const messages = first.length === 0 ? begun : [...first, ...begun];
    this.messagesListed += messages.length;
    return {
      system,
      messages,
      get repairs() {
        return shared.repairs;
      },
      get callIds() {
        return shared.callIds;
      },
      toolNames,
    };
  }

  work(): Omit<HistoryWork, "recordsRead"> {
    const sum = { ...this.past, messagesListed: this.messagesListed };
    if (this.replay !== null) addWork(sum, this.replay.machine);
    return sum;
  }

  private machineFor(window: GrowingWindow, growing: GrowingContext): GrowingReplay<unknown> {
    const { mapping } = this;
    const { generation } = window;
    const { target = growing.currentModel() } = this.options;
    const { replay } = this;
    if (replay !== null && replay.generation === generation && isSameModel(replay.target, target))
      return replay.machine;
    if (replay !== null) addWork(this.past, replay.machine);
    const machine = new GrowingReplay(replayRules(target, mapping.rules, this.options), mapping.turn);
    this.replay = { generation, target, machine };
    return machine;
  }
}

/** Joins the lists in one copy of the right length, because a list that grows is copied again. */
function joined(settled: readonly unknown[], settledCount: number, tail: readonly unknown[]): unknown[] {
  // Passing more arguments to one call may overflow the stack of an engine.
  if (tail.length > 1000) return settled.slice(0, settledCount).concat(tail);
  return settled.toSpliced(settledCount, settled.length - settledCount, ...tail);
}

function addWork(
  sum: { messagesCleaned: number; itemsPaired: number; turnsMapped: number },
  { work }: GrowingReplay<unknown>,
): void {
  sum.messagesCleaned += work.cleaned;
  sum.itemsPaired += work.paired;
  sum.turnsMapped += work.mapped;
}
