import {
  BaseCheckpointSaver,
  compareWritesSortKeys,
  getCheckpointId,
  maxChannelVersion,
  TASKS,
  WRITES_IDX_MAP,
  writesSortKey,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type DeltaChannelHistory,
  type PendingWrite,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import type { RecordDraft, SessionEntry, SessionRef } from "@throughline/core";
import { assertKnownOptions, isSameJson, optionKinds, type OptionTable } from "@throughline/core/internal";
import type { LiveItemsOptions } from "@throughline/foreign-formats/internal";
import {
  type AdapterOptions,
  adapterOptionTable,
  type LogView,
  type RunPolicyOptions,
  runPolicyTable,
} from "@throughline/foreign-formats/internal";
import { checkpointChange, foreignRootId, type NewCheckpoint } from "./checkpoint-drafts.ts";
import { placeIn, type RunConfig } from "./run-config.ts";
import { RunRules } from "./run-rules.ts";
import type { Thread } from "./thread.ts";
import { Threads } from "./threads.ts";
import { writeType, type StoredCheckpoint, type StoredWrite } from "./thread-records.ts";
import { dump, load, typed, type DumpedValue } from "./values.ts";

/**
 * Configures `createCheckpointSaver`. `sendPolicy` is checked when a run of a graph reads its thread and after each
 * step. `reset` is checked when a run reads a thread in which no node waits.
 */
export interface CheckpointSaverOptions extends AdapterOptions, RunPolicyOptions {
  /** Returns the session of a thread, also of another program. @default a session named by the thread's id */
  readonly refOf?: ((threadId: string) => SessionRef) | undefined;
  /** Names the channel whose messages are the conversation that other programs see. @default "messages" */
  readonly messagesChannel?: string | undefined;
  /** Turns values of channels and metadata into bytes and back. @default LangGraph's `JsonPlusSerializer` */
  readonly serde?: SerializerProtocol | undefined;
  /** Is called for records of other programs that cannot be shown as messages. @default none */
  readonly onLoss?: LiveItemsOptions["onLoss"] | undefined;
  /** Erases the session permanently on `deleteThread`. @default false: the session is archived */
  readonly purge?: boolean | undefined;
}

const { callback, filledText, flag, objectWith } = optionKinds;
const table: OptionTable<CheckpointSaverOptions> = {
  ...adapterOptionTable,
  ...runPolicyTable,
  refOf: callback,
  messagesChannel: filledText,
  serde: objectWith("dumpsTyped", "loadsTyped"),
  onLoss: callback,
  purge: flag,
};

/** Implements LangGraph's checkpointer over a log. `createCheckpointSaver` creates it. */
export class ThroughlineSaver extends BaseCheckpointSaver {
  readonly #threads: Threads;
  readonly #messagesChannel: string;
  readonly #rules: RunRules;

  constructor(options: CheckpointSaverOptions) {
    super(options.serde);
    this.#rules = new RunRules(options);
    this.#threads = new Threads(options);
    this.#messagesChannel = options.messagesChannel ?? "messages";
  }

  /**
   * Returns the checkpoint that a config names, or the newest of its thread; undefined when there is none. A session of
   * another program yields one checkpoint, which holds its messages.
   * @throws {ThroughlineError} INPUT_INVALID for a field of `configurable` that is not a string; SEND_DENIED for a run of a graph
   *   alone; what the store throws
   */
  override async getTuple(config: RunConfig): Promise<CheckpointTuple | undefined> {
    const { threadId, ns } = placeIn(config);
    if (threadId === null) return undefined;
    const id = getCheckpointId(config);
    const thread = this.#threads.thread(threadId);
    await this.#rules.beforeRun(thread, config);
    const view = await thread.view();
    const { index } = thread.state;
    const found = id === "" ? index.newest(ns) : index.checkpoint(ns, id);
    if (found !== undefined) return await this.#tuple(thread, view, found);
    const isForeign = ns === "" && index.lastRoot === null && (id === "" || id === foreignRootId);
    return isForeign ? await this.#foreignTuple(thread, view) : undefined;
  }

  /**
   * Yields checkpoints, newest first: those of one thread, or of all threads when the config names none.
   * @param options `before` a checkpoint, `filter` by equal metadata, and at most `limit`; all unless given
   * @throws {ThroughlineError} INPUT_INVALID, and what the store throws
   */
  override async *list(config: RunConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { threadId, checkpointId } = placeIn(config);
    const ns = config.configurable?.["checkpoint_ns"] as string | undefined;
    const { before, filter = {}, limit = Number.POSITIVE_INFINITY } = options;
    const beforeId = before === undefined ? "" : getCheckpointId(before);
    const wanted = Object.entries(filter).filter(([, value]) => value !== undefined);
    const threads = threadId === null ? await this.#threads.all() : [this.#threads.thread(threadId)];
    const found: { readonly thread: Thread; readonly checkpoint: StoredCheckpoint }[] = [];
    for (const thread of threads) {
      await thread.view();
      for (const checkpoint of thread.state.index.checkpoints.values())
        if (
          (ns === undefined || checkpoint.ns === ns) &&
          (checkpointId === null || checkpoint.id === checkpointId) &&
          (beforeId === "" || checkpoint.id < beforeId)
        )
          found.push({ thread, checkpoint });
    }
    let left = limit;
    for (const { thread, checkpoint } of found.toSorted((one, other) =>
      newestFirst(one.checkpoint, other.checkpoint),
    )) {
      if (left <= 0) return;
      const metadata = (await load(this.serde, checkpoint.metadata)) as Record<string, unknown>;
      if (!wanted.every(([name, value]) => metadata[name] === value)) continue;
      left -= 1;
      yield await this.#tuple(thread, await thread.view(), checkpoint);
    }
  }

  /**
   * Stores a checkpoint with the changed channels, and returns the config that names it. A run that is no longer
   * allowed ends here with SEND_DENIED if it has a next step; its checkpoint is stored all the same.
   * @throws {ThroughlineError} INPUT_INVALID for a config without `thread_id` and a value that the serializer refuses;
   *   SESSION_NOT_FOUND when the thread was deleted meanwhile; SEND_DENIED; what the store throws
   */
  override async put(
    config: RunConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunConfig> {
    const { threadId, ns, checkpointId: parentId } = placeIn(config, "put a checkpoint");
    const thread = this.#threads.thread(threadId);
    const view = await thread.view();
    await this.#threads.assertNotDeleted(thread, ns, parentId, checkpoint.id);
    if (ns === "") await thread.learnedConversation(view, thread.state.index.lastRoot, this.#messagesChannel);
    const given: NewCheckpoint = {
      ns,
      parentId: parentId === foreignRootId ? null : parentId,
      checkpoint,
      metadata: typed(await dump(this.serde, metadata, "the metadata of a checkpoint")),
      channels: await this.#dumped(
        thread,
        ns,
        checkpoint,
        changedChannels(thread, ns, parentId, checkpoint, newVersions),
      ),
      messagesChannel: this.#messagesChannel,
    };
    let entry: SessionEntry | null = null;
    await thread.append((newest) => {
      entry = newest.state?.entry ?? null;
      return checkpointChange(thread, newest, given);
    });
    this.#rules.afterStep(thread.log.ref, entry, { config, checkpoint, metadata });
    return { configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: checkpoint.id } };
  }

  /**
   * Stores the writes of a task to channels, under the checkpoint that the config names. Writes that are already stored
   * stay unchanged.
   * @throws {ThroughlineError} INPUT_INVALID for a config without `thread_id` or `checkpoint_id` and a value that the
   *   serializer refuses; SESSION_NOT_FOUND when the thread was deleted meanwhile; what the store throws
   */
  override async putWrites(config: RunConfig, writes: PendingWrite[], taskId: string, taskPath = ""): Promise<void> {
    const { threadId, ns, checkpointId } = placeIn(config, "put writes", true);
    const thread = this.#threads.thread(threadId);
    const dumped = await Promise.all(
      writes.map(async ([channel, value], place) => {
        const idx = (Object.hasOwn(WRITES_IDX_MAP, channel) ? WRITES_IDX_MAP[channel] : undefined) ?? place;
        const { messageIds, ...made } = await dump(this.serde, value, `a write to channel ${JSON.stringify(channel)}`);
        const facts = { ns, checkpointId, taskId, taskPath, idx, channel, value: typed(made) };
        return { ...facts, messageIds };
      }),
    );
    await this.#threads.assertWritable(thread, ns, checkpointId);
    await thread.append((view) => {
      const { index } = thread.state;
      const known = index.writes(ns, checkpointId);
      const { headId, timestamp, nextId } = thread.log.place(view);
      const isNew = ({ idx, value, channel }: (typeof dumped)[number]): boolean => {
        const other = known.get(`${taskId}\n${idx}`);
        return other === undefined || (idx < 0 && !(isSameJson(other.value, value) && other.channel === channel));
      };
      const drafts = dumped.filter(isNew).map(({ messageIds, ...facts }): RecordDraft => {
        const copies = messageIds.flatMap((id) => index.mentionsOf(id).records);
        const data = messageIds.length === 0 ? facts : { ...facts, messageIds };
        const frame = { id: nextId(), parentId: headId, timestamp, ...(copies.length === 0 ? {} : { copies }) };
        return { type: "custom", customType: writeType, appendMode: "side", ...frame, data };
      });
      return drafts.length === 0 ? null : { drafts };
    });
  }

  /** Archives the session of a thread, or erases it with the option `purge`. A missing session is no error. */
  override async deleteThread(threadId: string): Promise<void> {
    await this.#threads.remove(threadId);
  }

  /**
   * Returns the value of each channel at its nearest ancestor with one, and the writes since that ancestor.
   * @throws {ThroughlineError} INPUT_INVALID for a field of `configurable` that is not a string, and what the store throws
   */
  override async getDeltaChannelHistory({
    config,
    channels,
  }: {
    config: RunConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const { threadId, ns } = placeIn(config);
    const found = new Map<string, { writes: CheckpointPendingWrite[]; seed?: unknown }>();
    for (const name of channels) found.set(name, { writes: [] });
    const open = new Set(channels);
    const thread = threadId === null ? null : this.#threads.thread(threadId);
    await thread?.view();
    const id = getCheckpointId(config);
    const target = id === "" ? thread?.state.index.newest(ns) : thread?.state.index.checkpoint(ns, id);
    let at = thread === null || target === undefined ? undefined : thread.state.parentOf(target);
    while (thread !== null && at !== undefined && open.size > 0) {
      const known = thread.state.channels(at);
      for (const write of sortedWrites(thread.state.index.writes(ns, at.id)).toReversed()) {
        const { taskId, channel, value } = write;
        if (open.has(channel)) found.get(channel)?.writes.unshift([taskId, channel, await load(this.serde, value)]);
      }
      for (const name of [...open].filter((channel) => known.has(channel))) {
        const history = found.get(name);
        if (history !== undefined) history.seed = await this.#value(thread, at, name);
        open.delete(name);
      }
      at = thread.state.parentOf(at);
    }
    return Object.fromEntries(found);
  }

  async #dumped(
    thread: Thread,
    ns: string,
    { channel_values: values }: Checkpoint,
    channels: readonly string[],
  ): Promise<NewCheckpoint["channels"]> {
    const made = new Map<string, DumpedValue | null>();
    for (const name of channels) {
      if (!Object.hasOwn(values, name)) made.set(name, null);
      else {
        const isConversation = ns === "" && name === this.#messagesChannel;
        const before = isConversation ? thread.lastPut : undefined;
        const value = await dump(this.serde, values[name], `channel ${JSON.stringify(name)}`, before);
        if (isConversation) thread.lastPut = value;
        made.set(name, value);
      }
    }
    return made;
  }

  async #tuple(thread: Thread, view: LogView, checkpoint: StoredCheckpoint): Promise<CheckpointTuple> {
    const { state } = thread;
    const { ns, id, parentId, v, ts } = checkpoint;
    const values = new Map<string, unknown>();
    for (const name of state.channels(checkpoint).keys()) {
      const value = await this.#value(thread, checkpoint, name);
      if (value !== missing) values.set(name, value);
    }
    const versions = { ...checkpoint.channelVersions } as ChannelVersions;
    await this.#addForeign(thread, view, checkpoint, values, versions);
    if (v < 4 && parentId !== null) {
      const sends = sortedWrites(state.index.writes(ns, parentId)).filter(({ channel }) => channel === TASKS);
      values.set(TASKS, await Promise.all(sends.map(({ value }) => load(this.serde, value))));
      const known = Object.values(versions);
      versions[TASKS] = known.length > 0 ? maxChannelVersion(...known) : this.getNextVersion(undefined);
    }
    const pendingWrites = await Promise.all(
      sortedWrites(state.index.writes(ns, id)).map(
        async ({ taskId, channel, value }): Promise<CheckpointPendingWrite> => [
          taskId,
          channel,
          await load(this.serde, value),
        ],
      ),
    );
    const at = (checkpointId: string): RunConfig => ({
      configurable: { thread_id: thread.id, checkpoint_ns: ns, checkpoint_id: checkpointId },
    });
    return {
      config: at(id),
      checkpoint: {
        v,
        id,
        ts,
        channel_values: Object.fromEntries(values),
        channel_versions: versions,
        versions_seen: structuredClone(checkpoint.versionsSeen) as Checkpoint["versions_seen"],
      },
      metadata: (await load(this.serde, checkpoint.metadata)) as CheckpointMetadata,
      ...(parentId === null ? {} : { parentConfig: at(parentId) }),
      pendingWrites,
    };
  }

  /** Adds messages of other programs to the newest checkpoint as an update, so that the graph reads them. */
  async #addForeign(
    thread: Thread,
    view: LogView,
    checkpoint: StoredCheckpoint,
    values: Map<string, unknown>,
    versions: ChannelVersions,
  ): Promise<void> {
    const { lastRoot } = thread.state.index;
    const isNewest = checkpoint.ns === "" && thread.state.index.newest("")?.recordId === checkpoint.recordId;
    if (!isNewest || lastRoot?.recordId !== checkpoint.recordId) return;
    const name = this.#messagesChannel;
    const messages = await thread.learnedConversation(view, lastRoot, name);
    if (messages === null) return;
    thread.show(messages);
    values.set(name, await thread.revive(messages));
    versions[name] = this.getNextVersion(versions[name] as number | undefined);
  }

  /** Builds a checkpoint from the messages of another program's session, so that a graph can continue it. */
  async #foreignTuple(thread: Thread, view: LogView): Promise<CheckpointTuple | undefined> {
    const name = this.#messagesChannel;
    const messages = view.state === null ? null : await thread.learnedConversation(view, null, name);
    if (view.state === null || messages === null || messages.length === 0) return undefined;
    thread.show(messages);
    return {
      config: { configurable: { thread_id: thread.id, checkpoint_ns: "", checkpoint_id: foreignRootId } },
      checkpoint: {
        v: 4,
        id: foreignRootId,
        ts: new Date(view.state.updatedAtMs).toISOString(),
        channel_values: { [name]: await thread.revive(messages) },
        channel_versions: { [name]: this.getNextVersion(undefined) },
        versions_seen: {},
      },
      metadata: { source: "update", step: -1, parents: {} },
      pendingWrites: [],
    };
  }

  async #value(thread: Thread, checkpoint: StoredCheckpoint, name: string): Promise<unknown> {
    const found = thread.state.channels(checkpoint).get(name);
    if (found === undefined || "empty" in found.stored) return missing;
    if ("list" in found.stored) {
      const messages = thread.state.messages(thread.state.list(checkpoint, name) ?? []);
      return await load(this.serde, { type: "json", data: `[${messages.map(({ text: one }) => one).join(",")}]` });
    }
    const value = "record" in found.stored ? thread.state.index.value(found.stored.record) : found.stored;
    return value === null ? missing : await load(this.serde, value);
  }
}

/** Marks a channel without a value, because null and undefined can be values. */
const missing = Symbol("missing");

/** Creates a checkpointer over a store. @throws {ThroughlineError} INPUT_INVALID */
export function createCheckpointSaver(options: CheckpointSaverOptions): ThroughlineSaver {
  assertKnownOptions<CheckpointSaverOptions>("createCheckpointSaver", options, table);
  return new ThroughlineSaver(options);
}

function newestFirst(one: StoredCheckpoint, other: StoredCheckpoint): number {
  return one.id < other.id ? 1 : one.id > other.id ? -1 : 0;
}

function sortedWrites(writes: ReadonlyMap<string, StoredWrite>): readonly StoredWrite[] {
  const keyOf = ({ taskPath, taskId, idx }: StoredWrite): ReturnType<typeof writesSortKey> =>
    writesSortKey(taskPath, taskId, idx);
  return [...writes.values()].toSorted((one, other) => compareWritesSortKeys(keyOf(one), keyOf(other)));
}

/**
 * Selects the channels to store. LangGraph does not report channels that it received as an update, so these are added.
 */
function changedChannels(
  thread: Thread,
  ns: string,
  parentId: string | null,
  { channel_versions: versions, channel_values: values }: Checkpoint,
  newVersions: ChannelVersions,
): readonly string[] {
  if (parentId === foreignRootId) return Object.keys({ ...newVersions, ...values });
  const parent = thread.state.index.checkpoint(ns, parentId);
  const isOther = (name: string): boolean =>
    parent !== undefined && Object.hasOwn(values, name) && parent.channelVersions[name] !== versions[name];
  return [...new Set([...Object.keys(newVersions), ...Object.keys(versions).filter(isOther)])];
}
