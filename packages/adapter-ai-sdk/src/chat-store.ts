import type { SessionRef } from "@throughline/core";
import { assertArgument, assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import {
  adapterOptions,
  type AdapterOptions,
  adapterOptionTable,
  aiSdkMessages,
  assertMaySend,
  createFrameworkLog,
  firstBatch,
  type FrameworkLog,
  frameworkSessionKey,
  type LiveItem,
  type LiveItemsOptions,
  liveNote,
  loggedDecisions,
  type LogChange,
  type LogView,
  type MessageChunk,
  movesHead,
  noWait,
  type RunPolicyOptions,
  runPolicyTable,
  withDecisions,
} from "@throughline/foreign-formats/internal";
import { activeStreamOf, aliveForMs, isActiveStream, LiveStreams, streamFields } from "./active-streams.ts";
import { decidedTexts, waitOf } from "./chat-approvals.ts";
import {
  changeOf,
  cutAt,
  framework,
  idsOf,
  isUnchanged,
  type StoredChat,
  storedChat,
  type StoredText,
  textOf,
} from "./chat-changes.ts";
import { chunksOf } from "./message-chunks.ts";
import { withSdkErrors } from "./sdk-errors.ts";

/** Holds a message of a chat; it fits the `UIMessage` of every version of the SDK. */
export interface StoredMessage {
  /** Holds the SDK's id of the message, unique in its chat. */
  readonly id: string;
  /** States who wrote the message. */
  readonly role: "system" | "user" | "assistant";
  /** Lists text, reasoning, files, tool calls and their results in order, in the SDK's form. */
  readonly parts: readonly object[];
}

/** Configures `createChatStore`. */
export interface ChatStoreOptions extends AdapterOptions, Pick<RunPolicyOptions, "sendPolicy"> {
  /** Returns the session of a chat, for sessions that other programs created. @default a session named by the id */
  readonly refOf?: ((chatId: string) => SessionRef) | undefined;
  /** Is called for content of another program that a message cannot hold. @default none */
  readonly onLoss?: LiveItemsOptions["onLoss"] | undefined;
}

/** Configures `saveChat`. */
interface SaveChatOptions {
  /** Holds the id of the chat to save. A missing chat is created. */
  readonly chatId: string;
  /** Lists all messages of the chat in the program's state. */
  readonly messages: readonly StoredMessage[];
  /** Holds the id of the stream that answers now; null when no stream answers. @default unchanged */
  readonly activeStreamId?: string | null | undefined;
}

/** Describes a chat in a list. */
interface ListedChat {
  /** Holds the id that `loadChat` takes. */
  readonly id: string;
  /** Holds the label of the session, or its title without a label; null without both. */
  readonly title: string | null;
  /** Holds the time of the last change in UTC milliseconds. */
  readonly updatedAtMs: number;
  /**
   * Holds the stream id of the last `saveChat` with `activeStreamId`; null when no stream answers or its process has
   * died.
   */
  readonly activeStreamId: string | null;
}

/**
 * Stores chats of the AI SDK in sessions. Every method reports an error of the store as the cause of the SDK's
 * `AISDKError`, whose message ends with the code.
 */
export interface ChatStore {
  /**
   * Creates an empty chat and returns its id.
   * @param options `id`: a random UUID unless given; `title`: none unless given
   * @throws {ThroughlineError} INPUT_INVALID for an option
   */
  createChat(options?: { readonly id?: string | undefined; readonly title?: string | undefined }): Promise<string>;
  /**
   * Returns the messages of a chat in the form in which they were saved; an empty list for a missing chat. A session of
   * another program is converted to messages.
   * @param options `forModel`: every call gets an answer, so that a provider accepts the output of
   * `convertToModelMessages`; approvals of the last step stay open, because the SDK carries them out
   * @throws {ThroughlineError} INPUT_INVALID for an argument; SEND_DENIED with `forModel` where the agent may not
   * answer
   */
  loadChat<Message = StoredMessage>(
    id: string,
    options?: { readonly forModel?: boolean | undefined },
  ): Promise<Message[]>;
  /**
   * Stores new and changed messages. A message that this store loaded or saved, and that is missing now, is taken back;
   * the log keeps it. Messages that other processes saved meanwhile stay.
   * @throws {ThroughlineError} INPUT_INVALID for an option; APPROVAL_DECIDED when the log has another decision on a
   * call, which the next `loadChat` gives
   */
  saveChat(options: SaveChatOptions): Promise<void>;
  /**
   * Returns one page of the agent's chats, the most recently changed first. Pass `nextCursor` as `cursor` for the next
   * page; null marks the last page.
   * @param options `limit`: the most chats per page, from 1 to 1,000; 50 unless given
   * @throws {ThroughlineError} INPUT_INVALID for an option
   */
  listChats(options?: { readonly limit?: number | undefined; readonly cursor?: string | undefined }): Promise<{
    readonly chats: readonly ListedChat[];
    readonly nextCursor: string | null;
  }>;
  /** Archives a chat. */
  deleteChat(id: string): Promise<void>;
  /**
   * Streams the answer that is being saved now as `UIMessageChunk`s from its start; null when no stream answers. It
   * ends with the `saveChat` that sets `activeStreamId` to null, and 10 s after the process that set it has died.
   * @throws {ThroughlineError} INPUT_INVALID for an option
   */
  resumeChat(
    id: string,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<ReadableStream<MessageChunk> | null>;
  /** Returns the session behind a chat. */
  sessionOf(id: string): SessionRef;
}

const { callback, filledText, flag, integer, listOf, object, orNull, required, signal, text } = optionKinds;
const table: OptionTable<ChatStoreOptions> = {
  ...adapterOptionTable,
  sendPolicy: runPolicyTable.sendPolicy,
  refOf: callback,
  onLoss: callback,
};
const saveTable: OptionTable<SaveChatOptions> = {
  chatId: required(text),
  messages: required(listOf(object)),
  activeStreamId: orNull(text),
};

/** Creates a store for chats of the AI SDK. @throws {ThroughlineError} INPUT_INVALID */
export function createChatStore(options: ChatStoreOptions): ChatStore {
  assertKnownOptions<ChatStoreOptions>("createChatStore", options, table);
  return new Chats(options);
}

interface OpenChat {
  readonly log: FrameworkLog;
  /** Holds the ids of messages that this store returned or saved. Only these can be taken back by a later save. */
  known: ReadonlySet<unknown>;
  /** Holds the content of the log at the last read, so that a save right after a load does not read all of it again. */
  stored: StoredChat | null;
}

/** Limits the chats whose records stay in memory; a dropped chat is read again on use. */
const mostOpen = 500;

class Chats implements ChatStore {
  readonly #options: ChatStoreOptions;
  readonly #open = new Map<string, OpenChat>();
  readonly #streams = new LiveStreams();

  constructor(options: ChatStoreOptions) {
    this.#options = options;
  }

  sessionOf(id: string): SessionRef {
    const { agentId, namespace } = adapterOptions(this.#options);
    return this.#options.refOf?.(id) ?? frameworkSessionKey({ agentId, framework, id, namespace });
  }

  async createChat(given: { readonly id?: string; readonly title?: string } = {}): Promise<string> {
    assertKnownOptions<typeof given>("createChat", given, { id: text, title: filledText });
    const id = given.id ?? adapterOptions(this.#options).random.uuid();
    const entry = given.title === undefined ? {} : { label: given.title };
    await this.#append(id, () => ({ drafts: [], entry: { chatId: id, ...entry } }));
    return id;
  }

  loadChat<Message>(id: string, { forModel = false }: { readonly forModel?: boolean } = {}): Promise<Message[]> {
    assertArgument("loadChat", "id", id, text);
    assertArgument("loadChat", "forModel", forModel, flag);
    return withSdkErrors(async () => {
      const chat = this.#chat(id);
      const view = await chat.log.view();
      if (forModel) assertMaySend(chat.log.ref, view.state?.entry ?? null, this.#options.sendPolicy ?? null);
      const items = this.#itemsOf(view, forModel);
      if (!forModel) {
        chat.known = idsOf(items.map(({ value }) => value));
        chat.stored = storedChat(view, items);
      }
      const decisions = loggedDecisions(view);
      // The program may change these objects, so they are not shared with the cached chat.
      return items.map(({ value }, at) =>
        at === items.length - 1 ? (withDecisions(value, decisions) as Message) : (value as Message),
      );
    });
  }

  async saveChat(given: SaveChatOptions): Promise<void> {
    assertKnownOptions<SaveChatOptions>("saveChat", given, saveTable);
    const { chatId, activeStreamId } = given;
    let texts: readonly string[] = await withSdkErrors(async () => given.messages.map(textOf));
    const ids = new Set<unknown>(given.messages.map(({ id }) => id));
    const { known } = this.#chat(chatId);
    const { clock, random } = adapterOptions(this.#options);
    const save = (view: LogView, log: FrameworkLog): LogChange | null => {
      const stored = this.#storedIn(chatId, view);
      const isSame = isUnchanged(changeOf(stored, texts, ids, known));
      if (!isSame) texts = decidedTexts(view, texts);
      const change = changeOf(stored, texts, ids, known);
      const nowMs = clock.nowMs();
      const wait = waitOf(view, stored, change, { random, nowMs });
      const isSameStream = activeStreamId === undefined || isActiveStream(view.state?.entry, activeStreamId, nowMs);
      const hasNews = !isSame || !isSameStream || wait.drafts.length > 0 || view.state === null;
      if (!hasNews) return null;
      const place = log.place(view);
      const cut = cutAt(change.keep, stored, view, place);
      const made = aiSdkMessages.drafts(change.added, { ...place, headId: cut.headId });
      // Readers of the stream wait for records, and a change of the entry alone wakes no reader.
      const note = isSameStream
        ? []
        : [liveNote("ai-sdk.stream", { activeStreamId }, { ...place, headId: cut.headId })];
      const drafts = [...cut.drafts, ...made.flatMap((one) => one.drafts), ...note, ...wait.drafts];
      const batch = firstBatch(drafts, this.#options.store.capabilities.limits);
      isWhole = batch.length === drafts.length;
      const moved = cut.rewindTo === undefined || batch.some(movesHead) ? {} : { rewindTo: cut.rewindTo };
      // The stream ends, and the calls wait, only when the whole answer is stored.
      const stream = activeStreamId === undefined || !isWhole ? {} : streamFields(activeStreamId, nowMs);
      const waiting = isWhole ? wait.entry : noWait(view.state).entry;
      return { drafts: batch, ...moved, entry: { chatId, ...stream, ...waiting } };
    };
    // The store limits an append, so a longer chat takes several. Each one starts from the new end of the log.
    let isWhole = false;
    while (!isWhole) {
      isWhole = true;
      await this.#append(chatId, save);
    }
    this.#chat(chatId).known = new Set([...known, ...ids]);
    if (activeStreamId !== undefined) this.#keepAlive(chatId, activeStreamId);
  }

  async listChats(
    given: { readonly limit?: number; readonly cursor?: string } = {},
  ): ReturnType<ChatStore["listChats"]> {
    assertKnownOptions<typeof given>("listChats", given, { limit: integer({ min: 1 }), cursor: text });
    const { store, agentId, namespace, clock } = adapterOptions(this.#options);
    const keyPrefix = `agent:${agentId}:${framework}:`;
    const { sessions, nextCursor } = await withSdkErrors(() => store.list({ agentId, namespace, keyPrefix, ...given }));
    const chats = sessions.map(({ entry, ref, updatedAtMs }) => ({
      id: typeof entry["chatId"] === "string" ? entry["chatId"] : ref.key.slice(keyPrefix.length),
      title: [entry["label"], entry["title"]].find((one) => typeof one === "string") ?? null,
      updatedAtMs,
      activeStreamId: activeStreamOf(entry, clock.nowMs()),
    }));
    return { chats, nextCursor };
  }

  deleteChat(id: string): Promise<void> {
    return withSdkErrors(() => this.#options.store.remove(this.sessionOf(id)));
  }

  async resumeChat(id: string, given: { readonly signal?: AbortSignal } = {}): ReturnType<ChatStore["resumeChat"]> {
    assertKnownOptions<typeof given>("resumeChat", given, { signal });
    const { watch } = this.#options.store;
    const { clock } = adapterOptions(this.#options);
    const view = await withSdkErrors(() => this.#chat(id).log.view());
    const streamId = activeStreamOf(view.state?.entry, clock.nowMs());
    if (watch === undefined || streamId === null) return null;
    const ended = new AbortController();
    const either = given.signal === undefined ? ended.signal : AbortSignal.any([ended.signal, given.signal]);
    const chunks = chunksOf({
      read: async () => {
        const now = await this.#chat(id).log.view();
        const last = this.#itemsOf(now, false).at(-1)?.value;
        const isActive = activeStreamOf(now.state?.entry, clock.nowMs()) === streamId;
        return { last, aliveForMs: isActive ? aliveForMs(now.state?.entry, clock.nowMs()) : null };
      },
      changes: watch.watch(this.sessionOf(id), { afterSeq: view.lastSeq, signal: either }),
      clock,
      stop: () => ended.abort(),
    });
    return new ReadableStream<MessageChunk>({
      async pull(controller) {
        try {
          const { done, value } = await chunks.next();
          if (done === true) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          if (either.aborted) controller.close();
          else controller.error(error);
        }
      },
      cancel: () => ended.abort(),
    });
  }

  #chat(id: string): OpenChat {
    const { store, clock, random } = adapterOptions(this.#options);
    const ref = this.sessionOf(id);
    const name = JSON.stringify(ref);
    const chat = this.#open.get(name) ?? {
      log: createFrameworkLog({ store, ref, entry: { chatId: id }, clock, random }),
      known: new Set(),
      stored: null,
    };
    this.#open.delete(name);
    this.#open.set(name, chat);
    const [oldest] = this.#open.keys();
    if (this.#open.size > mostOpen && oldest !== undefined) this.#open.delete(oldest);
    return chat;
  }

  /** Renews the stream of this process until a save states another stream or none. */
  #keepAlive(chatId: string, streamId: string | null): void {
    const { clock } = adapterOptions(this.#options);
    this.#streams.keep(JSON.stringify(this.sessionOf(chatId)), streamId, async () => {
      let isSame = false;
      await this.#append(chatId, ({ state }) => {
        isSame = state?.entry["activeStreamId"] === streamId;
        return isSame ? { drafts: [], entry: streamFields(streamId, clock.nowMs()) } : null;
      });
      return isSame;
    });
  }

  /** Returns the messages of a view. The last load is reused when the log has not changed since. */
  #storedIn(id: string, view: LogView): readonly StoredText[] {
    const chat = this.#chat(id);
    const isSame = chat.stored?.records === view.records && chat.stored.headId === view.headId;
    if (!isSame || chat.stored === null) chat.stored = storedChat(view, this.#itemsOf(view, false));
    return chat.stored.messages;
  }

  #itemsOf(view: LogView, repaired: boolean): readonly LiveItem[] {
    const { onLoss } = this.#options;
    return aiSdkMessages.items(view, { repaired, ...(onLoss === undefined ? {} : { onLoss }) });
  }

  async #append(
    id: string,
    make: (view: LogView, log: FrameworkLog) => ReturnType<Parameters<FrameworkLog["append"]>[0]>,
  ): Promise<void> {
    const { log } = this.#chat(id);
    await withSdkErrors(() => log.append((view) => make(view, log)));
  }
}
