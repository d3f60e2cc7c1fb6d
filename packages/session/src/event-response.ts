import { type Clock, type ErrorCode, ThroughlineError } from "@throughline/core";
import { assertKnownOptions, errorCodes, optionKinds, type OptionTable } from "@throughline/core/internal";
import { readTurnMark, type TurnMark } from "./turn-mark.ts";
import type { TurnStreamEvent } from "./turn-stream-event.ts";

/** Sets the timing and the content of a response that `toResponse` creates. */
export interface TurnResponseOptions {
  /** Sets how long a client waits before it reconnects, in milliseconds. @default 2000 */
  readonly retryMs?: number | undefined;
  /** Sets after how long without an event a comment is sent, in milliseconds. @default 15000 */
  readonly heartbeatMs?: number | undefined;
  /** States whether the turn is aborted or finishes when the client disconnects. @default "abort" */
  readonly onDisconnect?: "abort" | "finish" | undefined;
  /**
   * Returns what is sent for an event: a value for JSON, a text as it is, or undefined to leave the event out. Use this
   * function to keep tool results and records from the client.
   * @default everything, without the messages and calls of `turn.result`
   */
  readonly data?: ((event: TurnStreamEvent) => unknown) | undefined;
  /** Adds headers to the response. @default none */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

const kinds: OptionTable<TurnResponseOptions> = {
  retryMs: optionKinds.integer({ min: 0, max: 86_400_000 }),
  heartbeatMs: optionKinds.integer({ min: 10, max: 86_400_000 }),
  onDisconnect: optionKinds.oneOf(["abort", "finish"]),
  data: optionKinds.callback,
  headers: optionKinds.object,
};

interface EventSource {
  readonly clock: Clock;
  /** Stops reading the events, while the turn continues. */
  readonly ignore: () => void;
}

const heartbeat = ": keep-alive\n\n";

/** Sends an event only when the client has room for it, so that a slow client does not fill the memory. */
export function respondWithEvents(
  stream: AsyncIterable<TurnStreamEvent, void, void>,
  options: TurnResponseOptions,
  { clock, ignore }: EventSource,
): Response {
  assertKnownOptions("stream.toResponse", options, kinds);
  const { retryMs = 2000, heartbeatMs = 15_000, onDisconnect = "abort", data = eventData, headers = {} } = options;
  const events = stream[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  let pending: ReturnType<typeof events.next> | null = null;
  const leave = async (): Promise<void> => {
    if (onDisconnect === "abort") await events.return?.();
    else ignore();
  };
  /** Resolves to the next frame; null after the last one. */
  const nextFrame = async (): Promise<string | null> => {
    for (;;) {
      pending ??= events.next();
      const result = await beforeTimeout(pending, heartbeatMs, clock);
      if (result === null) return heartbeat;
      pending = null;
      if (result.done === true) return null;
      const frame = eventFrame(result.value, data(result.value));
      if (frame !== null) return frame;
    }
  };
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(`retry: ${retryMs}\n\n`)),
    async pull(controller) {
      try {
        const frame = await nextFrame();
        if (frame === null) return controller.close();
        controller.enqueue(encoder.encode(frame));
      } catch (error) {
        // The status is sent already, so the failure must be an event.
        controller.enqueue(encoder.encode(frameOf({ event: "turn.failed", text: JSON.stringify(errorData(error)) })));
        controller.close();
        await leave();
      }
    },
    cancel: leave,
  });
  return new Response(body, {
    headers: {
      ...headers,
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    },
  });
}

/** Returns null when the timeout came first. The work is not aborted, so the caller can wait for it again. */
async function beforeTimeout<Value>(work: Promise<Value>, delayMs: number, clock: Clock): Promise<Value | null> {
  const timer = new AbortController();
  const timeout = clock.sleep(delayMs, timer.signal).then(
    () => null,
    () => null,
  );
  try {
    return await Promise.race([work, timeout]);
  } finally {
    timer.abort();
  }
}

/** Returns null for an event that `data` leaves out. */
function eventFrame(event: TurnStreamEvent, data: unknown): string | null {
  const text = typeof data === "string" ? data : JSON.stringify(data, withoutOwner);
  if (text === undefined) return null;
  const id = event.name === "record.appended" ? String(event.record.seq) : null;
  return frameOf({ event: event.name, text, id });
}

/** Each line of the text gets its own `data` field, because an empty line would end the event. */
function frameOf({
  event,
  text,
  id = null,
}: {
  readonly event: string;
  readonly text: string;
  readonly id?: string | null;
}): string {
  const lines = text.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
  return `${id === null ? "" : `id: ${id}\n`}event: ${event}\n${lines.join("")}\n`;
}

/** Leaves out what earlier events already sent, the words of errors, and the names of processes. */
function eventData(event: TurnStreamEvent): unknown {
  if (event.name === "turn.result") {
    const { messages: _messages, calls: _calls, ...turn } = event.turn;
    return { name: event.name, turn };
  }
  if (event.name === "record.appended") {
    const { record } = event.record;
    return { ...event, record: { ...event.record, record: { ...record, ...shownMark(readTurnMark(record)) } } };
  }
  if (event.name === "turn.interrupted")
    return { ...event, interruptedTurn: { ...event.interruptedTurn, owner: anotherProcess } };
  return "cause" in event ? { ...event, cause: errorData(event.cause) } : event;
}

/** The mark of a failed turn holds the message of its error, and that of an open turn the name of its process. */
function shownMark(mark: TurnMark | null): { readonly data?: object } {
  if (mark === null) return {};
  const { owner, error, ...shown } = mark;
  return {
    data: {
      ...shown,
      ...(owner === undefined ? {} : { owner: anotherProcess }),
      ...(error === undefined ? {} : { error: { code: error.code, message: sentenceOf(error.code) } }),
    },
  };
}

function sentenceOf(code: string): string {
  return Object.hasOwn(errorCodes, code) ? errorCodes[code as ErrorCode].summary : failedSentence;
}

const failedSentence = "The turn failed.";

/**
 * The sentences are those of the code, which every error of the code has. The message of an error may quote a provider, a
 * path, a process or the words of another user.
 */
function errorData(error: unknown): Readonly<Record<string, unknown>> {
  if (!ThroughlineError.isInstance(error)) return { code: "INTERNAL", message: failedSentence, retryable: false };
  const { code, retryable, outcome } = error;
  const { summary: message, remedy } = errorCodes[code];
  return { code, message, remedy, retryable, outcome };
}

const anotherProcess = "another process";
/** Matches the owner name that `processOwners` creates, with process number and machine. */
const wholeProcessName = /^pid \d{1,10} on [^\s"\\]{1,200} started \d{1,20}$/;

/** The process number and the machine must not reach a browser. */
function withoutOwner(member: string, value: unknown): unknown {
  return member === "owner" && typeof value === "string" && wholeProcessName.test(value) ? anotherProcess : value;
}
