import { JsonPlusSerializer } from "@langchain/langgraph-checkpoint";
import type { Clock, RandomSource, SessionRef, SessionStore } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import {
  createFrameworkLog,
  firstBatch,
  type FrameworkLog,
  langchainMessages,
  type LiveItemsOptions,
  type LogChange,
  type LogView,
} from "@throughline/foreign-formats/internal";
import type { SpokenMessage } from "./conversation.ts";
import { ThreadState } from "./thread-state.ts";
import { dump, load, type DumpedValue } from "./values.ts";
import type { StoredCheckpoint } from "./thread-records.ts";

/** This package writes messages in one form, so it ignores a custom serializer here. */
const plain = new JsonPlusSerializer();

export interface ThreadOptions {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  readonly threadId: string;
  readonly onLoss?: LiveItemsOptions["onLoss"] | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: RandomSource | undefined;
}

/** The entry names its thread in this field, so that a list of sessions finds all threads. */
export const threadField = "langgraphThreadId";

export class Thread {
  readonly id: string;
  readonly log: FrameworkLog;
  readonly state: ThreadState = new ThreadState();
  /** Holds the conversation as last stored, so that only new messages are read from the next one. */
  lastPut: DumpedValue | undefined;
  /**
   * Maps messages of other programs from this package's text to the text of LangChain's classes. The fields and their
   * order differ, and messages are compared as text.
   */
  readonly #written = new Map<string, string>();
  /** Holds the records of other programs that the graph received in this process. */
  readonly #shown = new Set<string>();
  readonly #onLoss: LiveItemsOptions["onLoss"];
  readonly #limits: SessionStore["capabilities"]["limits"];

  constructor({ store, ref, threadId, onLoss, clock, random }: ThreadOptions) {
    this.id = threadId;
    this.#onLoss = onLoss;
    this.#limits = store.capabilities.limits;
    const ports = { ...(clock === undefined ? {} : { clock }), ...(random === undefined ? {} : { random }) };
    this.log = createFrameworkLog({ store, ref, entry: { [threadField]: threadId }, reads: "all", ...ports });
  }

  async view(): Promise<LogView> {
    const view = await this.log.view();
    this.state.update(view);
    return view;
  }

  /**
   * Appends a change that `make` builds for the newest view. The store limits the size of an append, so a large change
   * takes several.
   */
  async append(make: (view: LogView) => LogChange | null): Promise<void> {
    let isWhole: boolean;
    do {
      isWhole = true;
      const after = await this.log.append((view) => {
        this.state.update(view);
        const change = make(view);
        const first = firstBatch(change?.drafts ?? [], this.#limits);
        if (change === null || first.length === change.drafts.length) return change;
        isWhole = false;
        return { drafts: first };
      });
      this.state.update(after);
    } while (!isWhole);
  }

  /** Returns `conversation` with the messages of other programs in the text that a graph writes. */
  async learnedConversation(
    view: LogView,
    last: StoredCheckpoint | null,
    channel: string,
  ): Promise<readonly SpokenMessage[] | null> {
    const found = this.conversation(view, last, channel);
    if (found === null) return null;
    await this.#learn(found);
    return this.conversation(view, last, channel);
  }

  revive(messages: readonly SpokenMessage[]): Promise<unknown> {
    return load(plain, { type: "json", data: `[${messages.map(({ text }) => text).join(",")}]` });
  }

  /**
   * Returns the conversation in the log when it differs from the graph's: another program wrote behind the last
   * checkpoint, or a message was redacted. Returns null when both are equal.
   */
  conversation(view: LogView, last: StoredCheckpoint | null, channel: string): readonly SpokenMessage[] | null {
    const holders = this.state.list(last ?? undefined, channel) ?? [];
    // A value that is no list of messages comes from a custom serializer, so the log lacks a part of the conversation.
    if (last !== null && holders.length === 0 && this.state.isClosed(last, channel)) return null;
    const own = this.state.messages(holders);
    const isWhole = own.length === holders.length;
    if (view.headId === (last?.headId ?? null) && isWhole) return null;
    const session = { ...view, records: view.records as readonly SourcedRecord[] };
    const ownTexts = own.map(({ text }) => text);
    const asWritten = this.#spoken(langchainMessages.items(session), own);
    if (isWhole && isSame(asWritten, ownTexts)) return null;
    const onLoss = this.#onLoss === undefined ? {} : { onLoss: this.#onLoss };
    return this.#spoken(langchainMessages.items(session, { repaired: true, ...onLoss }), own);
  }

  /**
   * Lets LangChain's classes write the messages of other programs once, so that later comparisons match the graph's
   * text.
   */
  async #learn(messages: readonly SpokenMessage[]): Promise<void> {
    const texts = messages.filter(({ holderId }) => holderId === null).map(({ text }) => text);
    const unknown = texts.filter((text) => !this.#written.has(text));
    if (unknown.length === 0) return;
    const value = await load(plain, { type: "json", data: `[${unknown.join(",")}]` });
    const written = (await dump(plain, value, "messages of another program")).messages ?? [];
    for (const [at, text] of unknown.entries()) {
      const own = written.length === unknown.length ? (written[at] as string) : text;
      this.#written.set(text, own).set(own, own);
    }
  }

  /** Remembers that the graph received these messages, so that it can later be seen to remove them. */
  show(messages: readonly SpokenMessage[]): void {
    for (const { recordIds } of messages) for (const id of recordIds) this.#shown.add(id);
  }

  /** Checks whether the graph received a message. A graph cannot have removed a message that it never received. */
  isKnown({ holderId, recordIds }: SpokenMessage): boolean {
    return holderId !== null || recordIds.length === 0 || recordIds.some((id) => this.#shown.has(id));
  }

  /** Matches the items with the records that keep them. Equal texts take their records in order. */
  #spoken(items: ReturnType<typeof langchainMessages.items>, own: readonly SpokenMessage[]): readonly SpokenMessage[] {
    const known = new Map<string, SpokenMessage[]>();
    for (const message of own) known.set(message.text, [...(known.get(message.text) ?? []), message]);
    return items.map(({ value, recordIds, isNative }) => {
      const made = JSON.stringify(value);
      const text = isNative ? made : (this.#written.get(made) ?? made);
      const holderId = isNative ? (this.state.index.holderOf(text) ?? null) : null;
      return known.get(text)?.shift() ?? { text, holderId, recordIds };
    });
  }
}

function isSame(messages: readonly SpokenMessage[], texts: readonly string[]): boolean {
  return messages.length === texts.length && messages.every(({ text }, at) => text === texts[at]);
}
