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

/** Of what we write ourselves, whatever the program's serializer is. */
const plain = new JsonPlusSerializer();

/** What a thread is kept in. */
export interface ThreadOptions {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  readonly threadId: string;
  readonly onLoss?: LiveItemsOptions["onLoss"];
  readonly clock?: Clock;
  readonly random?: RandomSource;
}

/** The field of an entry that names the thread. */
export const threadField = "langgraphThreadId";

/** A thread over the log of its session. */
export class Thread {
  readonly id: string;
  readonly log: FrameworkLog;
  readonly state: ThreadState = new ThreadState();
  /** The conversation as it was put last. */
  lastPut: DumpedValue | undefined;
  /** Messages of others as LangChain's classes write them, by how we do: fields and their order differ. */
  readonly #written = new Map<string, string>();
  /** Records of other programs that the graph was given in this process. */
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

  /** Appends what is made for the newest view, in as many appends as the store needs for it. */
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

  /** `conversation`, with the messages of others as a graph writes them. */
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

  /** Messages as LangChain's classes. */
  revive(messages: readonly SpokenMessage[]): Promise<unknown> {
    return load(plain, { type: "json", data: `[${messages.map(({ text }) => text).join(",")}]` });
  }

  /**
   * The conversation as the log has it, where that is not what the graph has: others wrote behind the checkpoint that was put
   * last, or a message was redacted. Null where it is the same.
   */
  conversation(view: LogView, last: StoredCheckpoint | null, channel: string): readonly SpokenMessage[] | null {
    const holders = this.state.list(last ?? undefined, channel) ?? [];
    // Values of a serializer of the program's own: what the log has is not all of the conversation.
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

  /** Learns how a graph writes messages that others wrote. */
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

  /** Notes that the graph was given these. */
  show(messages: readonly SpokenMessage[]): void {
    for (const { recordIds } of messages) for (const id of recordIds) this.#shown.add(id);
  }

  /** Whether the graph knows a message: what others wrote meanwhile, it cannot have removed. */
  isKnown({ holderId, recordIds }: SpokenMessage): boolean {
    return holderId !== null || recordIds.length === 0 || recordIds.some((id) => this.#shown.has(id));
  }

  /** Items with the records that keep them, where there are any. */
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
