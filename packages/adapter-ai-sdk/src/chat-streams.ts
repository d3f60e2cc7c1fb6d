import type { PartialReply } from "@throughline/core";
import type { Fields } from "@throughline/core/internal";
import { adapterOptions, type LogView, type MessageChunk } from "@throughline/foreign-formats/internal";
import { activeStreamOf, leaseMs, LiveStreams, streamTurnOf } from "./active-streams.ts";
import type { StoredText } from "./chat-changes.ts";
import type { ChatLogs, ChatLogsOptions, SavedTexts } from "./chat-logs.ts";
import { isStreamOver, KeptStream, type ReadMessages, type StreamTarget } from "./kept-stream.ts";
import { chunksOf, type Growth } from "./message-chunks.ts";
import { openAnswer, readOpenText } from "./open-answer.ts";

/** Keeps the streams of chats while they answer, and gives them to readers. */
export class ChatStreams {
  readonly #options: ChatLogsOptions;
  readonly #logs: ChatLogs;
  readonly #live = new LiveStreams();
  readonly #kept = new Map<string, KeptStream>();

  constructor(options: ChatLogsOptions, logs: ChatLogs) {
    this.#options = options;
    this.#logs = logs;
  }

  /** Renews a stream that a save named, and ends the one before it. */
  follow(chatId: string, streamId: string | null, { state }: LogView): void {
    const kept = this.#kept.get(chatId);
    if (kept !== undefined && kept.streamId !== streamId) kept.stop();
    const fence = state?.head.turn?.fence;
    const name = JSON.stringify(this.#logs.refOf(chatId));
    if (streamId === null || fence === undefined) this.#live.stop(name);
    else this.#live.keep(name, streamId, () => this.#renew(chatId, streamId, fence));
  }

  async #renew(chatId: string, streamId: string, fence: number): Promise<boolean> {
    const { store, clock } = adapterOptions(this.#options);
    const turn = { action: "renew", fence, leaseUntilMs: clock.nowMs() + leaseMs } as const;
    try {
      await store.append(this.#logs.refOf(chatId), [], { entry: {}, turn });
      return true;
    } catch (error) {
      if (!isStreamOver(error)) throw error;
      const kept = this.#kept.get(chatId);
      if (kept?.streamId === streamId) kept.stop();
      return false;
    }
  }

  async keep(chatId: string, stream: ReadableStream<string>, read: ReadMessages): Promise<void> {
    const { clock, random } = adapterOptions(this.#options);
    const streamId = random.uuid();
    const kept = new KeptStream(streamId, this.#target(chatId, streamId), clock);
    this.#kept.get(chatId)?.stop();
    this.#kept.set(chatId, kept);
    try {
      await kept.run(stream, read);
    } catch (error) {
      // Nothing will end the stream in the store, so its lease must.
      this.#live.stop(JSON.stringify(this.#logs.refOf(chatId)), streamId);
      throw error;
    } finally {
      if (this.#kept.get(chatId) === kept) this.#kept.delete(chatId);
    }
  }

  async resume(chatId: string, signal: AbortSignal | undefined): Promise<ReadableStream<MessageChunk> | null> {
    const { store, clock } = adapterOptions(this.#options);
    const view = await this.#logs.chat(chatId).log.view();
    const streamId = activeStreamOf(view.state, clock.nowMs());
    if (streamId === null) return null;
    const ended = new AbortController();
    const either = signal === undefined ? ended.signal : AbortSignal.any([ended.signal, signal]);
    const kept = this.#kept.get(chatId);
    const isHere = kept?.streamId === streamId;
    let id: unknown = null;
    const read = async (): Promise<Growth> => {
      const growth =
        isHere && (!kept.isOver || kept.hasFailed)
          ? { last: kept.message, isActive: !kept.isOver }
          : await this.#read(chatId, { streamId, messageId: id });
      id ??= growth.last?.["role"] === "assistant" ? growth.last["id"] : null;
      return growth;
    };
    const changes = isHere
      ? kept.changes()
      : (store.watch?.watch(this.#logs.refOf(chatId), { afterSeq: view.lastSeq, signal: either }) ?? null);
    const chunks = chunksOf({ read, changes, clock, signal: either, stop: () => ended.abort() });
    return streamOf(isHere ? withFailure(chunks, kept) : chunks, either, ended);
  }

  /** Returns what a dead stream has left of its message; null when no stream died. */
  async left(chatId: string, view: LogView, messages: readonly Fields[]): Promise<Fields | null> {
    const { store, clock } = adapterOptions(this.#options);
    if (streamTurnOf(view.state) === null || activeStreamOf(view.state, clock.nowMs()) !== null) return null;
    const answer = openAnswer(view, messages, await readOpenText(store, this.#logs.refOf(chatId)));
    if (answer === null) return null;
    const parts = (answer["parts"] as readonly Fields[]).map((part) =>
      part["state"] === "streaming" ? { ...part, state: "done" } : part,
    );
    return { ...answer, parts };
  }

  async #read(chatId: string, at: { readonly streamId: string; readonly messageId: unknown }): Promise<Growth> {
    const { store, clock } = adapterOptions(this.#options);
    const partial = await readOpenText(store, this.#logs.refOf(chatId));
    const view = await this.#logs.chat(chatId).log.view();
    const messages = this.#logs.itemsOf(view, false).map(({ value }) => value);
    // Another process may have saved a question behind the answer.
    const known = messages.findLast(({ id }) => id === at.messageId) ?? messages.at(-1) ?? null;
    const isActive = activeStreamOf(view.state, clock.nowMs()) === at.streamId;
    return { last: openAnswer(view, messages, partial) ?? known, isActive };
  }

  #target(chatId: string, streamId: string): StreamTarget {
    const { store, clock } = adapterOptions(this.#options);
    const logs = this.#logs;
    const ref = logs.refOf(chatId);
    const save = (message: Fields | null, activeStreamId?: null): Promise<LogView> =>
      logs.save(chatId, {
        activeStreamId,
        make: ({ state }, stored) =>
          state?.entry["activeStreamId"] === streamId && streamTurnOf(state) !== null
            ? withMessage(stored, message)
            : null,
      });
    let place: Pick<PartialReply, "sessionId" | "turnId" | "fence" | "afterSeq"> | null = null;
    const takePlace = (view: LogView): void => {
      const turn = streamTurnOf(view.state);
      if (turn === null) return;
      place = { sessionId: view.sessionId, turnId: turn.turnId, fence: turn.fence, afterSeq: view.lastSeq };
    };
    return {
      begin: async (messageId) => {
        const make: Parameters<ChatLogs["save"]>[1]["make"] = (_view, stored) => withMessage(stored, null);
        await logs.save(chatId, { make, activeStreamId: streamId, entry: { activeStreamMessage: messageId } });
        const view = await logs.chat(chatId).log.view();
        this.follow(chatId, streamId, view);
        takePlace(view);
        return logs.itemsOf(view, false).find(({ value }) => value["id"] === messageId)?.value ?? null;
      },
      settle: async (message) => takePlace(await save(message)),
      write: async (text, at) => {
        if (place === null) return;
        const facts = { v: 1, attempt: 0, provider: null, api: null, model: null, updatedMs: clock.nowMs() } as const;
        await store.partials?.write(ref, { ...facts, ...place, step: at + 1, text });
      },
      end: async (message) => {
        await save(message, null);
        this.#live.stop(JSON.stringify(ref), streamId);
      },
    };
  }
}

/** Returns the messages with this one in its place; a new one is the last. */
function withMessage(stored: readonly StoredText[], message: Fields | null): SavedTexts {
  const text = message === null ? null : JSON.stringify(message);
  const at = message === null ? -1 : stored.findLastIndex(({ id }) => id === message["id"]);
  const texts = stored.map((one) => one.text);
  const all = text === null ? texts : at < 0 ? [...texts, text] : texts.with(at, text);
  const ids = new Set<unknown>(stored.map(({ id }) => id));
  return { texts: all, ids: message === null ? ids : ids.add(message["id"]) };
}

/** A browser sees this sentence, whatever the store said. */
const notStored = "The reply could not be stored.";

async function* withFailure(
  chunks: AsyncGenerator<MessageChunk, void>,
  kept: KeptStream,
): AsyncGenerator<MessageChunk, void> {
  yield* chunks;
  if (kept.hasFailed) yield { type: "error", errorText: notStored };
}

function streamOf(
  chunks: AsyncGenerator<MessageChunk, void>,
  either: AbortSignal,
  ended: AbortController,
): ReadableStream<MessageChunk> {
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
