import type { Checkpoint } from "@langchain/langgraph-checkpoint";
import type { AppendDraft, RecordDraft } from "@throughline/core";
import { isSameJson, type Fields } from "@throughline/core/internal";
import type { LogChange, LogView } from "@throughline/foreign-formats/internal";
import { changeConversation, type SpokenMessage } from "./conversation.ts";
import { listDifference } from "./list-difference.ts";
import type { Thread } from "./thread.ts";
import {
  checkpointType,
  copyFormat,
  valueType,
  type ListPart,
  type StoredChannel,
  type StoredCheckpoint,
  type TypedText,
} from "./thread-records.ts";
import { messageIdOf, typed, type DumpedValue } from "./values.ts";

/** A thread that another program wrote starts with this checkpoint. Its id sorts before all others. */
export const foreignRootId = "00000000-0000-6000-8000-000000000000";

export interface NewCheckpoint {
  readonly ns: string;
  readonly parentId: string | null;
  readonly checkpoint: Checkpoint;
  readonly metadata: TypedText;
  /** Holds the new values of the changed channels; null means that a channel is empty now. */
  readonly channels: ReadonlyMap<string, DumpedValue | null>;
  readonly messagesChannel: string;
}

/**
 * After this many changes a list is written whole, or after one change per message if the list is longer. Between whole
 * lists, the log grows only with new messages.
 */
const mostChanges = 100;

/** Builds the change for a checkpoint; null when the log already contains it. */
export function checkpointChange(thread: Thread, view: LogView, given: NewCheckpoint): LogChange | null {
  return new CheckpointWriter(thread, view, given).change();
}

class CheckpointWriter {
  readonly #thread: Thread;
  readonly #view: LogView;
  readonly #given: NewCheckpoint;
  readonly #drafts: AppendDraft[] = [];
  readonly #parent: StoredCheckpoint | undefined;
  readonly #place: ReturnType<Thread["log"]["place"]>;
  /**
   * A fork continues from the head that the parent checkpoint states. Every other checkpoint continues from the log's
   * head.
   */
  readonly #baseId: string | null;
  #headId: string | null;

  constructor(thread: Thread, view: LogView, given: NewCheckpoint) {
    this.#thread = thread;
    this.#view = view;
    this.#given = given;
    this.#place = thread.log.place(view);
    const { ns, parentId } = given;
    const { index } = thread.state;
    this.#parent = index.checkpoint(ns, parentId);
    const isBehindLast = index.lastRoot === null || this.#parent?.recordId === index.lastRoot.recordId;
    const isFork = ns === "" && !isBehindLast;
    this.#baseId = isFork ? (this.#parent?.headId ?? null) : view.headId;
    this.#headId = this.#baseId;
  }

  change(): LogChange | null {
    const { ns, checkpoint, metadata, parentId, channels } = this.#given;
    const { index } = this.#thread.state;
    const known = index.checkpoint(ns, checkpoint.id);
    if (known !== undefined && this.#isSame(known)) return null;
    const stored: [string, StoredChannel][] = [];
    for (const [name, value] of channels) stored.push([name, this.#channel(name, value)]);
    if (this.#parent !== undefined)
      for (const name of this.#thread.state.channels(this.#parent).keys())
        if (!Object.hasOwn(checkpoint.channel_values, name) && !channels.has(name))
          stored.push([name, { empty: true }]);
    const { v, ts, id, channel_versions: channelVersions, versions_seen: versionsSeen } = checkpoint;
    const facts = { ns, id, parentId, v, ts, channelVersions, versionsSeen, metadata };
    this.#side(checkpointType, { ...facts, channels: Object.fromEntries(stored), headId: this.#headId });
    const isMoved = ns === "" && this.#headId === this.#baseId && this.#baseId !== this.#view.headId;
    return { drafts: this.#drafts, ...(isMoved ? { rewindTo: this.#baseId } : {}) };
  }

  /** LangGraph may deliver a checkpoint twice. The second delivery must write nothing. */
  #isSame(known: StoredCheckpoint): boolean {
    const { checkpoint, metadata, parentId } = this.#given;
    return (
      known.parentId === parentId &&
      known.ts === checkpoint.ts &&
      isSameJson(known.metadata, metadata) &&
      isSameJson(known.channelVersions, checkpoint.channel_versions) &&
      isSameJson(known.versionsSeen, checkpoint.versions_seen)
    );
  }

  #channel(name: string, value: DumpedValue | null): StoredChannel {
    if (value === null) return { empty: true };
    const { ns, messagesChannel } = this.#given;
    const isConversation = ns === "" && name === messagesChannel;
    const before = this.#thread.state.list(this.#parent, name);
    const isEmptyList = value.messages?.length === 0;
    if (value.messages !== null && (!isEmptyList || before !== null || isConversation))
      return this.#list(name, value.messages, before, isConversation);
    if (value.messageIds.length === 0) return typed(value);
    // The value gets its own record, so that redacting one of its messages removes the value and keeps the checkpoint.
    const record = this.#side(valueType, { value: typed(value), messageIds: value.messageIds }, value.messageIds);
    return { record };
  }

  #list(
    name: string,
    texts: readonly string[],
    before: readonly string[] | null,
    isConversation: boolean,
  ): StoredChannel {
    const holders = isConversation ? this.#speak(name, texts) : texts.map((text) => this.#holder(text, null));
    const depth = this.#thread.state.depth(this.#parent, name) + 1;
    if (before === null || depth >= Math.max(mostChanges, holders.length)) return { list: holders, depth: 0 };
    const list = listDifference(before, holders).map((part): ListPart =>
      "added" in part ? (holders[part.added] as string) : [part.from, part.count],
    );
    return { list, depth };
  }

  #speak(name: string, texts: readonly string[]): readonly string[] {
    const { state } = this.#thread;
    const last = this.#baseId === this.#view.headId ? (state.index.lastRoot ?? null) : (this.#parent ?? null);
    const isCurrent = last === state.index.lastRoot;
    const projected = isCurrent ? this.#thread.conversation(this.#view, last, name) : null;
    const own = projected ?? state.messages(state.list(this.#parent, name) ?? []);
    const before = own.filter((message) => this.#thread.isKnown(message));
    const place = { ...this.#place, headId: this.#baseId };
    const made = changeConversation({ before, after: texts, place, index: state.index });
    this.#drafts.push(...made.drafts);
    this.#headId = made.headId;
    return made.messages.map((found, at) =>
      typeof found === "string" ? found : this.#holder(texts[at] as string, before[found] as SpokenMessage),
    );
  }

  /** Returns the record that keeps a message. A message without one gets a new record beside the conversation. */
  #holder(text: string, spoken: SpokenMessage | null): string {
    const known = spoken === null ? this.#thread.state.index.holderOf(text) : spoken.holderId;
    if (known !== undefined && known !== null) return known;
    const messageId = messageIdOf(JSON.parse(text));
    const messageIds = messageId === null ? [] : [messageId];
    const of = spoken?.recordIds ?? [];
    return this.#side(copyFormat, { of, messageIds }, messageIds, { text, of });
  }

  #side(
    customType: string,
    data: Fields,
    messageIds: readonly string[] = [],
    copied?: { readonly text: string; readonly of: readonly string[] },
  ): string {
    const repeats = messageIds.flatMap((id) => this.#thread.state.index.mentionsOf(id).records);
    const copies = [...new Set([...repeats, ...(copied?.of ?? [])])];
    const id = this.#place.nextId();
    const frame = { id, parentId: this.#headId, timestamp: this.#place.timestamp };
    const noted = copies.length === 0 ? {} : { copies };
    const record: RecordDraft = { type: "custom", customType, appendMode: "side", ...frame, ...noted, data };
    this.#drafts.push(
      copied === undefined ? record : { source: copied.text, record: { ...record, sourceFormat: copyFormat } },
    );
    return id;
  }
}
