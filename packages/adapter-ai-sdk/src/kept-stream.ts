import { type Clock, hasErrorCode } from "@throughline/core";
import { type Fields, isFields } from "@throughline/core/internal";

/** The store gets a change this long after it, and never more often. */
const flushMs = 700;

/** Stores what a stream brings. */
export interface StreamTarget {
  /** States in the chat that this message is being answered, and returns the stored message with this id. */
  begin(messageId: string): Promise<Fields | null>;
  /** Stores the message with its finished parts. */
  settle(message: Fields): Promise<void>;
  /** Keeps the text of the part at this place, which is being written. Finished parts before it are settled. */
  write(text: string, place: number): Promise<void>;
  /** Stores the whole message and ends the stream, unless it was ended before. */
  end(message: Fields | null): Promise<void>;
}

/** Reads a stream of message chunks as the SDK does: it returns the message after each chunk. */
export type ReadMessages = (options: {
  readonly message?: Fields;
  readonly stream: ReadableStream<Fields>;
}) => AsyncIterable<Fields>;

/** Keeps the message of a stream while it is being written: for readers of this process, and in the store. */
export class KeptStream {
  readonly streamId: string;
  readonly #target: StreamTarget;
  readonly #clock: Clock;
  readonly #ended = new AbortController();
  #message: Fields | null = null;
  #settled = "";
  #isOver = false;
  #hasFailed = false;
  #changed = Promise.withResolvers<void>();

  constructor(streamId: string, target: StreamTarget, clock: Clock) {
    this.streamId = streamId;
    this.#target = target;
    this.#clock = clock;
  }

  get message(): Fields | null {
    return this.#message;
  }

  /** Is true once the message is stored, or another stream or none was saved. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Is true when the message could not be stored whole. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Yields each time the message has grown. */
  changes(): AsyncIterable<void> {
    const next = async (): Promise<IteratorResult<void>> => {
      if (!this.#isOver) await this.#changed.promise;
      return { done: this.#isOver, value: undefined };
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  }

  /** Keeps a stream of server-sent events until its end. @throws what the target throws */
  async run(stream: ReadableStream<string>, read: ReadMessages): Promise<void> {
    const chunks = chunksOf(stream);
    try {
      const first = await chunks.next();
      if (first.done === true) return;
      const named = first.value["messageId"];
      const messageId = typeof named === "string" && named !== "" ? named : this.streamId;
      const message = await this.#target.begin(messageId);
      await this.#keep(
        read({ ...(message === null ? {} : { message }), stream: sourceOf(first.value, messageId, chunks) }),
      );
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    } finally {
      this.stop();
      await stream.cancel().catch(() => {});
    }
  }

  /** Stores nothing more, and ends the stream for its readers. */
  stop(): void {
    this.#isOver = true;
    this.#ended.abort();
    this.#wake();
  }

  async #keep(messages: AsyncIterable<Fields>): Promise<void> {
    const flushing = this.#flush();
    try {
      for await (const message of messages) {
        this.#message = message;
        this.#wake();
        if (this.#isOver) return;
      }
    } finally {
      this.#ended.abort();
      this.#wake();
      await flushing;
      if (!this.#isOver) await this.#target.end(this.#message);
    }
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  async #flush(): Promise<void> {
    const { signal } = this.#ended;
    let stored: Fields | null = null;
    while (!signal.aborted) {
      if (this.#message === stored) await this.#changed.promise;
      await this.#clock.sleep(flushMs, signal).catch(() => {});
      const message: Fields | null = this.#message;
      if (signal.aborted || message === null) continue;
      try {
        await this.#store(message);
        stored = message;
      } catch (error) {
        if (isStreamOver(error)) this.stop();
        // Other failures are repeated here, and the last one surfaces when the whole message is stored.
      }
    }
  }

  async #store(message: Fields): Promise<void> {
    const parts = (Array.isArray(message["parts"]) ? (message["parts"] as readonly unknown[]) : []).filter(isFields);
    const growing = parts.findIndex(({ state }) => state === "streaming" || state === "input-streaming");
    const settled = growing < 0 ? parts : parts.slice(0, growing);
    const text = JSON.stringify(settled);
    // The beginning of a step alone is no record: a reader adds it.
    if (text !== this.#settled && settled.some(({ type }) => type !== "step-start")) {
      await this.#target.settle({ ...message, parts: settled });
      this.#settled = text;
    }
    const part = parts[growing];
    if (part?.["type"] === "text" && typeof part["text"] === "string") await this.#target.write(part["text"], growing);
  }
}

/** Returns whether a write failed because the stream has ended: by another save, or with its chat. */
export function isStreamOver(error: unknown): boolean {
  return hasErrorCode(error, "TURN_FENCED", "SESSION_NOT_FOUND", "SESSION_ARCHIVED", "STORE_CLOSED");
}

/** Reads the chunks of server-sent events. The SDK ends them with `[DONE]`. */
async function* chunksOf(stream: ReadableStream<string>): AsyncGenerator<Fields, void> {
  let rest = "";
  for await (const piece of stream.values({ preventCancel: true })) {
    const events = (rest + piece).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      if (!event.startsWith("data: ") || event === "data: [DONE]") continue;
      const chunk: unknown = JSON.parse(event.slice("data: ".length));
      if (isFields(chunk)) yield chunk;
    }
  }
}

function sourceOf(first: Fields, messageId: string, rest: AsyncGenerator<Fields, void>): ReadableStream<Fields> {
  let isFirst = true;
  return new ReadableStream<Fields>({
    async pull(controller) {
      if (isFirst) {
        isFirst = false;
        return controller.enqueue(first["type"] === "start" ? { ...first, messageId } : first);
      }
      const { done, value } = await rest.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await rest.return();
    },
  });
}
