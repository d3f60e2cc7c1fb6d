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

/** Options of `createHistory`. */
export interface HistoryOptions extends RenderOptions, HistoryWindow {}

/** A session's history that grows with its log. What it gives is what building it from all records would give. */
export interface History<Message = unknown> {
  /** Takes the next records, in order of seq. A main record becomes the head. */
  append(records: readonly StoredRecord[]): void;
  /** Says where the head is after a rewind. */
  moveHead(headId: string | null): void;
  /**
   * Other limits from now on, for another model or after an overflow; one that is not given stays. A result that was sent
   * short stays as it was; one that was sent whole and is short now unbinds the thinking after it.
   */
  setWindow(window: HistoryWindow): void;
  /** Says that what was rendered last went to a model: how results were shortened in it is kept from now on. */
  markSent(): void;
  /**
   * Makes what the next `context` and `render` need in slices of 20 ms: for a session so long that others must not wait until
   * all of it is rendered. A call meanwhile does the rest at once.
   *
   * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION
   */
  prepare(): Promise<void>;
  /**
   * What the next rendering is made of. Its `cut` and `truncations` are to be recorded with the call, and given to
   * `createHistory` as `recorded` by the process that goes on.
   *
   * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION
   */
  context(): WindowedContext;
  /**
   * The messages for the provider, with every repair that was made.
   *
   * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION
   */
  render(): Rendering<Message>;
  /**
   * The same without a list of its own: after 10,000 messages as cheap as after 10.
   *
   * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION
   */
  renderShared(): SharedRendering<Message>;
  /** What was done so far. */
  readonly work: HistoryWork;
}

/**
 * A rendering that shares its beginning with those before and after it: the messages are `first`, then as many of
 * `settled` as `settledCount` says, then `tail`. Those of `settled` stay as they are while further ones come after them;
 * another list takes its place where the beginning changes. Repairs and changed ids are put together when they are read.
 */
interface SharedRendering<Message = unknown> extends Omit<Rendering<Message>, "messages"> {
  /** The system prompt, where it stands among the messages. */
  readonly first: readonly Message[];
  /** Messages that stay as they are while the history grows. Others share this list; do not change it. */
  readonly settled: readonly Message[];
  /** The number of messages of `settled` that belong to this rendering. */
  readonly settledCount: number;
  /** The messages behind them, which a later rendering may change. */
  readonly tail: readonly Message[];
}

/** Counts of what a history has cost. */
export interface HistoryWork {
  /** Records that were taken in. */
  readonly recordsRead: number;
  /** Messages whose content was read and checked. */
  readonly messagesCleaned: number;
  /** Calls and results that were matched with each other. */
  readonly itemsPaired: number;
  /** Turns that were put into the provider's shape. */
  readonly turnsMapped: number;
  /** Messages put into the lists that were handed out. */
  readonly messagesListed: number;
}

/**
 * Creates a history for one provider. A next record of the same branch costs only itself. A compaction, an edit,
 * another branch, a moved cut, or a record that changes earlier ones builds the whole again.
 *
 * @param target the name of the provider's format, or a target of `/targets`
 * @throws {ThroughlineError} INPUT_INVALID for a target or an option that is not known
 * @example
 * const history = createHistory("anthropic", { limit: { maxTokens, countTokens, recorded: cut }, truncate: { maxChars }
 * }); history.append(records); const { messages, system } = history.render(); // sent: what was shortened in it stays
 * so, and this is recorded with the call history.markSent(); const { cut, truncations } = history.context();
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
  /** What was begun in slices is ended before anything changes it. */
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

/** What a replay was made for: the beginning, by its generation, and who gets it. */
interface CurrentReplay {
  readonly generation: number;
  readonly target: Context["model"];
  readonly machine: GrowingReplay<unknown>;
}

function isSameModel(one: Context["model"], other: Context["model"]): boolean {
  return one?.provider === other?.provider && one?.modelId === other?.modelId;
}

/** The replay of one beginning, as long as it lasts. */
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

  /** What the next rendering needs, a message a step. */
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

  /** With a list of its own. */
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

/** The first of a list and what follows them, in one copy of the right length: a list that grows is copied once more. */
function joined(settled: readonly unknown[], settledCount: number, tail: readonly unknown[]): unknown[] {
  // So many arguments are fine for any engine.
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
