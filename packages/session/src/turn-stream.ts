import { ThroughlineError, type Clock } from "@throughline/core";
import { EventBuffer } from "./event-buffer.ts";
import { EventReader } from "./event-reader.ts";
import { respondWithEvents, type TurnResponseOptions } from "./event-response.ts";
import type { TurnOutputSchema } from "./output-schema.ts";
import type { RunTurnOptions, Turn, TurnResult } from "./turn.ts";
import { deltaEvent, type TurnStreamEvent } from "./turn-stream-event.ts";

/**
 * Streams the events of one running turn to one reader. The turn runs whether the events are read or not, and waits for
 * no reader. Leaving the loop with `break` aborts the turn.
 */
export interface TurnStream<Result = Turn> extends AsyncIterable<TurnStreamEvent, void, void>, AsyncDisposable {
  /** Resolves to the finished turn, as `runTurn` does. Rejects with the error that the loop over the events throws. */
  readonly result: Promise<Result>;
  /**
   * Answers a web request with the events as server-sent events. A client that disconnects aborts the turn by default.
   * @throws {ThroughlineError} INPUT_INVALID for a wrong option, and when the events are read already
   */
  toResponse(options?: TurnResponseOptions): Response;
}

export function streamTurn<Schema extends TurnOutputSchema>(
  run: (options: RunTurnOptions<Schema>) => Promise<TurnResult<Schema>>,
  options: RunTurnOptions<Schema>,
  clock: Clock,
): TurnStream<TurnResult<Schema>> {
  // The stream passes the options on, so the turn has the type that they ask for.
  const stream: unknown = new RunningStream(run as (given: RunTurnOptions) => Promise<Turn>, options, clock);
  return stream as TurnStream<TurnResult<Schema>>;
}

class RunningStream implements TurnStream {
  readonly result: Promise<Turn>;
  readonly #buffer = new EventBuffer();
  readonly #controller = new AbortController();
  readonly #clock: Clock;
  readonly #reader = new EventReader(
    this.#buffer,
    () => this[Symbol.asyncDispose](),
    "Read them in one place and pass them on, or use `onEvent`.",
  );

  constructor(run: (options: RunTurnOptions) => Promise<Turn>, options: RunTurnOptions, clock: Clock) {
    this.#clock = clock;
    const { signal: own } = this.#controller;
    this.result = run({
      ...options,
      signal: options.signal === undefined ? own : AbortSignal.any([options.signal, own]),
      onDelta: (delta) => {
        this.#buffer.push(deltaEvent(delta));
        options.onDelta?.(delta);
      },
      onEvent: (event) => {
        this.#buffer.push(event);
        options.onEvent?.(event);
      },
    });
    this.result.then(
      (turn) => {
        // A turn that ran before sends no pieces, so its text comes at once.
        if (turn.replayed) this.#buffer.push({ name: "text.snapshot", text: turn.text });
        this.#buffer.finish({ name: "turn.result", turn });
      },
      (error: unknown) => this.#buffer.fail(error),
    );
  }

  [Symbol.asyncIterator](): AsyncIterator<TurnStreamEvent, void, void> {
    return this.#reader.read();
  }

  toResponse(options: TurnResponseOptions = {}): Response {
    return respondWithEvents(this, options, {
      clock: this.#clock,
      ignore: () => this.#buffer.close(),
    });
  }

  /** Aborts a running turn, and waits until its end is stored. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#buffer.close();
    this.#controller.abort(new ThroughlineError("ABORTED", "The reader of the turn's events left."));
    // Disposal must not throw the error of the turn. A caller that needs the outcome reads `result`.
    await this.result.catch(() => null);
  }
}
