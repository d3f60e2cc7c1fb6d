import type { LogView } from "@throughline/foreign-formats/internal";
import { ThreadIndex, type StoredMessage } from "./thread-index.ts";
import type { ListPart, StoredChannel, StoredCheckpoint } from "./thread-records.ts";

/** Names the checkpoint that stores a channel's value: the checkpoint itself, or its nearest ancestor with one. */
interface Resolved {
  readonly owner: StoredCheckpoint;
  readonly stored: StoredChannel;
}

type Channels = ReadonlyMap<string, Resolved>;

/** Limits the resolved lists in memory; the oldest ones are dropped. */
const keptLists = 8;

export class ThreadState {
  readonly index: ThreadIndex = new ThreadIndex();
  readonly #channels = new Map<string, Channels>();
  readonly #lists = new Map<string, readonly string[]>();
  #generation = 0;

  update(view: LogView): void {
    this.index.update(view);
    if (this.index.generation === this.#generation) return;
    this.#generation = this.index.generation;
    this.#channels.clear();
    this.#lists.clear();
  }

  /** Returns the channels that have a value at a checkpoint, from the checkpoint itself and its ancestors. */
  channels(checkpoint: StoredCheckpoint): Channels {
    const path: StoredCheckpoint[] = [];
    const seen = new Set<string>();
    let at: StoredCheckpoint | undefined = checkpoint;
    while (at !== undefined && !this.#channels.has(at.recordId) && !seen.has(at.recordId)) {
      seen.add(at.recordId);
      path.push(at);
      at = this.parentOf(at);
    }
    let before: Channels = (at === undefined ? undefined : this.#channels.get(at.recordId)) ?? new Map();
    for (const owner of path.toReversed()) {
      const channels = new Map(before);
      for (const [name, stored] of owner.channels)
        if ("empty" in stored) channels.delete(name);
        else channels.set(name, { owner, stored });
      this.#channels.set(owner.recordId, channels);
      before = channels;
    }
    return before;
  }

  /**
   * Returns the ids of the records that keep the messages of a channel, in order. It is null when the channel is no
   * list of messages.
   */
  list(checkpoint: StoredCheckpoint | undefined, channel: string): readonly string[] | null {
    if (checkpoint === undefined) return null;
    const steps: { readonly name: string; readonly parts: readonly ListPart[] }[] = [];
    let at: Resolved | undefined = this.channels(checkpoint).get(channel);
    let base: readonly string[] | undefined;
    while (at !== undefined && "list" in at.stored) {
      const name = listName(at.owner, channel);
      base = this.#lists.get(name);
      if (base !== undefined) break;
      steps.push({ name, parts: at.stored.list });
      if (at.stored.depth === 0) break;
      const parent = this.parentOf(at.owner);
      at = parent === undefined ? undefined : this.channels(parent).get(channel);
    }
    if (base === undefined && steps.length === 0) return null;
    let list = [...(base ?? [])];
    for (const { parts } of steps.toReversed()) list = applyParts(list, parts);
    const [newest] = steps;
    if (newest !== undefined) this.#keep(newest.name, list);
    return newest === undefined ? (base ?? null) : list;
  }

  /** Checks for a value that is no list of messages. Its messages cannot be compared with the log. */
  isClosed(checkpoint: StoredCheckpoint, channel: string): boolean {
    const found = this.channels(checkpoint).get(channel);
    return found !== undefined && !("list" in found.stored);
  }

  /** Counts the changes between a channel's list and the last list that was written whole. */
  depth(checkpoint: StoredCheckpoint | undefined, channel: string): number {
    const found = checkpoint === undefined ? undefined : this.channels(checkpoint).get(channel);
    return found !== undefined && "list" in found.stored ? found.stored.depth : 0;
  }

  /** Returns the messages of a list without the redacted ones. */
  messages(holderIds: readonly string[]): readonly StoredMessage[] {
    return holderIds.map((id) => this.index.message(id)).filter((message) => message !== null);
  }

  parentOf({ ns, parentId }: StoredCheckpoint): StoredCheckpoint | undefined {
    return this.index.checkpoint(ns, parentId);
  }

  #keep(name: string, list: readonly string[]): void {
    this.#lists.delete(name);
    this.#lists.set(name, list);
    for (const oldest of this.#lists.keys()) {
      if (this.#lists.size <= keptLists) break;
      this.#lists.delete(oldest);
    }
  }
}

function listName({ recordId }: StoredCheckpoint, channel: string): string {
  return `${recordId} ${channel}`;
}

/** A list that only grows is extended in place: copying a long list for each step would cost quadratic time. */
function applyParts(list: string[], parts: readonly ListPart[]): string[] {
  const [first] = parts;
  const isGrown =
    typeof first === "object" &&
    first[0] === 0 &&
    first[1] === list.length &&
    parts.slice(1).every((part) => typeof part === "string");
  if (isGrown) {
    for (const part of parts) if (typeof part === "string") list.push(part);
    return list;
  }
  return parts.flatMap((part) => (typeof part === "string" ? [part] : list.slice(part[0], part[0] + part[1])));
}
