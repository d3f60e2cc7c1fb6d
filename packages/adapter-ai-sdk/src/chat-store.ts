import { type SessionRef, type SessionState, ThroughlineError } from "@throughline/core";
import {
  assertArgument,
  assertKnownOptions,
  deleteUser,
  loadExisting,
  optionKinds,
  type OptionTable,
  renameSession,
  tellListener,
  type UserDeletion,
} from "@throughline/core/internal";
import {
  adapterOptions,
  type AdapterOptions,
  adapterOptionTable,
  assertMaySend,
  type LiveItemsOptions,
  loadedOnce,
  loggedDecisions,
  type MessageChunk,
  type RunPolicyOptions,
  runPolicyTable,
  withDecisions,
} from "@throughline/foreign-formats/internal";
import { activeStreamOf } from "./active-streams.ts";
import { framework, idsOf, storedChat, textOf } from "./chat-changes.ts";
import { ChatLogs, type ChatSave } from "./chat-logs.ts";
import { ChatStreams } from "./chat-streams.ts";
import type { ReadMessages } from "./kept-stream.ts";
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
  /**
   * Receives the failure when `keepStream` cannot store its stream, also when the program left its promise. The promise
   * rejects with the same error.
   * @default none
   */
  readonly onStreamError?: ((failure: { readonly chatId: string; readonly error: unknown }) => void) | undefined;
  /** Is called for content of another program that a message cannot hold. @default none */
  readonly onLoss?: LiveItemsOptions["onLoss"] | undefined;
}

/** Configures `saveChat`. */
interface SaveChatOptions {
  /** Holds the id of the chat to save. A missing chat is created. */
  readonly chatId: string;
  /** Lists all messages of the chat in the program's state. @default unchanged */
  readonly messages?: readonly StoredMessage[] | undefined;
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
  /** Returns a chat as `listChats` shows it; null for a missing or archived chat. */
  findChat(id: string): Promise<ListedChat | null>;
  /**
   * Gives a chat a title, which lists show. The empty text removes it, and lists show the title of the session again.
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND, SESSION_ARCHIVED
   */
  renameChat(id: string, title: string): Promise<void>;
  /**
   * Archives a chat.
   * @param options `purge`: deletes the chat and every copy of its content instead, also when it is archived
   * @throws {ThroughlineError} SESSION_NOT_FOUND
   */
  deleteChat(id: string, options?: { readonly purge?: boolean | undefined }): Promise<void>;
  /**
   * Deletes all sessions of the store's namespace for good, archived ones included. Give each user a namespace.
   * @param options `dryRun`: counts only, and deletes nothing
   * @throws {ThroughlineError} INPUT_INVALID for an option, and without a namespace; SESSION_BUSY while a turn runs.
   *   Sessions that were deleted before the error stay deleted.
   */
  deleteUser(options?: {
    readonly dryRun?: boolean | undefined;
    readonly signal?: AbortSignal | undefined;
  }): Promise<UserDeletion>;
  /**
   * Keeps a stream while it answers: its message is stored, and `resumeChat` of any process gives the text as it comes.
   * Pass the stream of `consumeSseStream`. The call sets `activeStreamId`, stores the whole message at the end, and
   * then sets it to null. It resolves when the stream has ended.
   *
   * A stream that cannot be stored calls `onStreamError`, and readers of `resumeChat` in this process end with an `error`
   * chunk. The promise rejects too; it may be left alone, as the SDK does.
   * @throws {ThroughlineError} INPUT_INVALID for an argument; SESSION_BUSY while another program answers in the session
   * @example consumeSseStream: ({ stream }) => chats.keepStream("trip", stream)
   */
  keepStream(id: string, stream: ReadableStream<string>): Promise<void>;
  /**
   * Streams the answer that is being written now as `UIMessageChunk`s from its start; null when no stream answers. In
   * the process of `keepStream` each chunk comes as it is, and in other processes text is at most 2 s behind. Without
   * `keepStream` it gives what is saved. It ends with the `saveChat` that sets `activeStreamId` to null, within 2 s
   * after the process has died on the same Linux host, and else within 11 s.
   * @throws {ThroughlineError} INPUT_INVALID for an option
   */
  resumeChat(
    id: string,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<ReadableStream<MessageChunk> | null>;
  /** Returns the session behind a chat. */
  sessionOf(id: string): SessionRef;
}

const { callback, filledText, flag, integer, listOf, object, objectWith, orNull, required, signal, text } = optionKinds;
const table: OptionTable<ChatStoreOptions> = {
  ...adapterOptionTable,
  sendPolicy: runPolicyTable.sendPolicy,
  refOf: callback,
  onLoss: callback,
  onStreamError: callback,
};
const saveTable: OptionTable<SaveChatOptions> = {
  chatId: required(text),
  messages: listOf(object),
  activeStreamId: orNull(text),
};

/** Creates a store for chats of the AI SDK. @throws {ThroughlineError} INPUT_INVALID */
export function createChatStore(options: ChatStoreOptions): ChatStore {
  assertKnownOptions<ChatStoreOptions>("createChatStore", options, table);
  return new Chats(options);
}

/** The cast is safe: the SDK's chunks and messages are JSON objects. */
const readMessages = loadedOnce(async () => (await import("ai")).readUIMessageStream as unknown as ReadMessages);

class Chats implements ChatStore {
  readonly #options: ChatStoreOptions;
  readonly #logs: ChatLogs;
  readonly #streams: ChatStreams;

  constructor(options: ChatStoreOptions) {
    this.#options = options;
    this.#logs = new ChatLogs(options);
    this.#streams = new ChatStreams(options, this.#logs);
  }

  sessionOf(id: string): SessionRef {
    return this.#logs.refOf(id);
  }

  async createChat(given: { readonly id?: string; readonly title?: string } = {}): Promise<string> {
    assertKnownOptions<typeof given>("createChat", given, { id: text, title: filledText });
    const id = given.id ?? adapterOptions(this.#options).random.uuid();
    const entry = given.title === undefined ? {} : { label: given.title };
    await withSdkErrors(() => this.#logs.chat(id).log.append(() => ({ drafts: [], entry: { chatId: id, ...entry } })));
    return id;
  }

  loadChat<Message>(id: string, { forModel = false }: { readonly forModel?: boolean } = {}): Promise<Message[]> {
    assertArgument("loadChat", "id", id, text);
    assertArgument("loadChat", "forModel", forModel, flag);
    return withSdkErrors(async () => {
      const chat = this.#logs.chat(id);
      const view = await chat.log.view();
      if (forModel) assertMaySend(chat.log.ref, view.state?.entry ?? null, this.#options.sendPolicy ?? null);
      const items = this.#logs.itemsOf(view, forModel);
      const values = items.map(({ value }) => value);
      // The text that a dead process has left is stored with the next save of these messages.
      const left = await this.#streams.left(id, view, values);
      const at = values.findLastIndex((value) => left !== null && value["id"] === left["id"]);
      const messages = left === null ? values : at < 0 ? [...values, left] : values.with(at, left);
      if (!forModel) {
        chat.known = idsOf(messages);
        chat.stored = storedChat(view, items);
      }
      const decisions = loggedDecisions(view);
      // The program may change these objects, so they are not shared with the cached chat.
      return messages.map((value, place) =>
        place === messages.length - 1 ? (withDecisions(value, decisions) as Message) : (value as Message),
      );
    });
  }

  async saveChat(given: SaveChatOptions): Promise<void> {
    assertKnownOptions<SaveChatOptions>("saveChat", given, saveTable);
    const { chatId, activeStreamId, messages } = given;
    await withSdkErrors(async () => {
      const texts = messages?.map(textOf);
      const ids = new Set<unknown>(messages?.map(({ id }) => id));
      const make: ChatSave["make"] = (_view, stored) =>
        texts === undefined ? { texts: stored.map((one) => one.text), ids } : { texts, ids };
      const view = await this.#logs.save(chatId, { make, activeStreamId });
      const chat = this.#logs.chat(chatId);
      chat.known = new Set([...chat.known, ...ids]);
      if (activeStreamId !== undefined) this.#streams.follow(chatId, activeStreamId, view);
    });
  }

  async listChats(
    given: { readonly limit?: number; readonly cursor?: string } = {},
  ): ReturnType<ChatStore["listChats"]> {
    assertKnownOptions<typeof given>("listChats", given, { limit: integer({ min: 1 }), cursor: text });
    const { store, agentId, namespace } = adapterOptions(this.#options);
    const keyPrefix = `agent:${agentId}:${framework}:`;
    const { sessions, nextCursor } = await withSdkErrors(() => store.list({ agentId, namespace, keyPrefix, ...given }));
    return { chats: sessions.map((state) => this.#listed(state.ref.key.slice(keyPrefix.length), state)), nextCursor };
  }

  async findChat(id: string): Promise<ListedChat | null> {
    assertArgument("findChat", "id", id, text);
    const state = await withSdkErrors(() => this.#options.store.load(this.sessionOf(id)));
    return state === null ? null : this.#listed(id, state);
  }

  #listed(id: string, state: SessionState): ListedChat {
    const { entry, updatedAtMs } = state;
    return {
      id: typeof entry["chatId"] === "string" ? entry["chatId"] : id,
      title: [entry["label"], entry["title"]].find((one) => typeof one === "string") ?? null,
      updatedAtMs,
      activeStreamId: activeStreamOf(state, adapterOptions(this.#options).clock.nowMs()),
    };
  }

  async renameChat(id: string, title: string): Promise<void> {
    assertArgument("renameChat", "id", id, text);
    assertArgument("renameChat", "title", title, text);
    const { store, clock } = adapterOptions(this.#options);
    await withSdkErrors(async () => {
      await renameSession(store, await loadExisting(store, this.sessionOf(id)), { clock, label: title });
    });
  }

  async deleteChat(id: string, given: { readonly purge?: boolean } = {}): Promise<void> {
    assertArgument("deleteChat", "id", id, text);
    assertKnownOptions<typeof given>("deleteChat", given, { purge: flag });
    const { purge = false } = given;
    await withSdkErrors(() => this.#options.store.remove(this.sessionOf(id), purge ? { purge } : {}));
  }

  async deleteUser(given: { readonly dryRun?: boolean; readonly signal?: AbortSignal } = {}): Promise<UserDeletion> {
    assertKnownOptions<typeof given>("deleteUser", given, { dryRun: flag, signal });
    const { store, clock, namespace, agentId } = adapterOptions(this.#options);
    return await withSdkErrors(async () => {
      if (namespace === "")
        throw new ThroughlineError(
          "INPUT_INVALID",
          "deleteUser: the chat store has no namespace, so its chats are those of all users. Create it with `namespace`.",
          { outcome: "not-applied" },
        );
      return await deleteUser(
        store,
        { namespace, keyPrefix: null },
        { ...given, agentIds: [agentId], clock, timeoutMs: 0 },
      );
    });
  }

  keepStream(id: string, stream: ReadableStream<string>): Promise<void> {
    const kept = this.#keepStream(id, stream);
    // The SDK does not wait for this promise. Node ends a process at an unhandled rejection.
    kept.catch((error: unknown) => tellListener(this.#options.onStreamError, { chatId: id, error }));
    return kept;
  }

  async #keepStream(id: string, stream: ReadableStream<string>): Promise<void> {
    assertArgument("keepStream", "id", id, text);
    assertArgument("keepStream", "stream", stream, objectWith("getReader"));
    const read = await readMessages();
    if (read === null) throw new TypeError("keepStream needs the package ai, which cannot be loaded.");
    await withSdkErrors(() => this.#streams.keep(id, stream, read));
  }

  async resumeChat(id: string, given: { readonly signal?: AbortSignal } = {}): ReturnType<ChatStore["resumeChat"]> {
    assertArgument("resumeChat", "id", id, text);
    assertKnownOptions<typeof given>("resumeChat", given, { signal });
    return await withSdkErrors(() => this.#streams.resume(id, given.signal));
  }
}
