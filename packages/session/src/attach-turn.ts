import {
  type Clock,
  type ErrorCode,
  hasErrorCode,
  type OpenTurn,
  type SessionRef,
  ThroughlineError,
} from "@throughline/core";
import { optionKinds, type OptionTable, sessionRefText } from "@throughline/core/internal";
import { isGone, readInterruptedTurn } from "./begin-turn.ts";
import { replayedTurn } from "./close.ts";
import { EventBuffer } from "./event-buffer.ts";
import { EventReader } from "./event-reader.ts";
import { respondWithEvents, type TurnResponseOptions } from "./event-response.ts";
import { type FollowedEvent, followTurn } from "./follow-turn.ts";
import { readKeyedTurn } from "./keyed-turn.ts";
import { type LiveReader, liveTurns } from "./live-turn.ts";
import { loadLog, type OpenParts } from "./open-handle.ts";
import type { SessionLog } from "./session-log.ts";
import { type InterruptedTurn, readTurnMark, type TurnMark } from "./turn-mark.ts";
import type { TurnStreamEvent } from "./turn-stream-event.ts";
import { forward } from "./turn-wait.ts";
import type { Turn } from "./turn.ts";

/**
 * Streams the events of a turn that runs already, in this process or another one, to one reader. The first event is
 * `text.snapshot`. The last one is `turn.result`, or `turn.interrupted` when the process of the turn is gone. The loop
 * throws the error of a turn that failed. Leaving the loop does not affect the turn.
 */
export interface AttachedTurn extends AsyncIterable<TurnStreamEvent, void, void>, AsyncDisposable {
  /** Holds the id of the turn. */
  readonly turnId: string;
  /**
   * Answers a web request with the events as server-sent events.
   * @throws {ThroughlineError} INPUT_INVALID for a wrong option, and when the events are read already
   */
  toResponse(options?: Omit<TurnResponseOptions, "onDisconnect">): Response;
}

/** Sets the signal of `attach`. */
export interface AttachOptions {
  /** Ends the events of this reader. The turn continues. */
  readonly signal?: AbortSignal | undefined;
}

export const attachTable: OptionTable<AttachOptions> = { signal: optionKinds.signal };

/** Returns null when no turn runs. Nothing is created. */
export async function attachTurn(
  ref: SessionRef,
  parts: Omit<OpenParts, "onClose">,
  signals: readonly (AbortSignal | undefined)[],
): Promise<AttachedTurn | null> {
  const { store, holdBack = null } = parts.options;
  const { clock } = parts.shared;
  const live = liveTurns(store).get(sessionRefText(ref));
  if (live !== undefined) {
    const attached = new Attached(live.turnId, clock, signals);
    live.attach(attached);
    return attached;
  }
  const state = await store.load(ref);
  const turn = state?.head.turn ?? null;
  const isDead = (open: OpenTurn): boolean => open.leaseUntilMs <= clock.nowMs() || isGone(open, parts.shared);
  if (state === null || turn === null || isDead(turn)) return null;
  const attached = new Attached(turn.turnId, clock, signals);
  const { signal } = attached;
  const events = followTurn({ store, ref, state, turn, clock, isDead, holdBack, signal });
  void new RemoteTurn(ref, turn, parts).pass(events, attached);
  return attached;
}

/** Buffers the events for the reader until it leaves or the turn has ended. */
class Attached implements AttachedTurn, LiveReader {
  readonly turnId: string;
  readonly #buffer = new EventBuffer();
  readonly #clock: Clock;
  readonly #leaving = new AbortController();
  readonly #endForwarding: () => void;
  readonly #reader = new EventReader(
    this.#buffer,
    () => this[Symbol.asyncDispose](),
    "Call `attach` again for each reader.",
  );

  constructor(turnId: string, clock: Clock, signals: readonly (AbortSignal | undefined)[]) {
    this.turnId = turnId;
    this.#clock = clock;
    this.#endForwarding = forward(signals, this.#leaving);
    this.signal.addEventListener("abort", () => this.#buffer.close(), { once: true });
    if (this.signal.aborted) this.#buffer.close();
  }

  /** Aborts when the reader leaves. */
  get signal(): AbortSignal {
    return this.#leaving.signal;
  }

  push(event: TurnStreamEvent): void {
    this.#buffer.push(event);
  }

  finish(event: TurnStreamEvent): void {
    this.#endForwarding();
    this.#buffer.finish(event);
  }

  fail(error: unknown): void {
    this.#endForwarding();
    this.#buffer.fail(error);
  }

  [Symbol.asyncIterator](): AsyncIterator<TurnStreamEvent, void, void> {
    return this.#reader.read();
  }

  toResponse(options: Omit<TurnResponseOptions, "onDisconnect"> = {}): Response {
    return respondWithEvents(this, options, { clock: this.#clock, ignore: () => this.#leaving.abort(left) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#endForwarding();
    this.#leaving.abort(left);
  }
}

const left = new ThroughlineError("ABORTED", "The reader of the turn's events left.");

/** Turns what the store says about a turn of another process into its events. */
class RemoteTurn {
  readonly #ref: SessionRef;
  readonly #turn: OpenTurn;
  readonly #parts: Omit<OpenParts, "onClose">;

  constructor(ref: SessionRef, turn: OpenTurn, parts: Omit<OpenParts, "onClose">) {
    this.#ref = ref;
    this.#turn = turn;
    this.#parts = parts;
  }

  async pass(events: AsyncIterable<FollowedEvent>, reader: Attached): Promise<void> {
    const place = { ref: this.#ref, turnId: this.#turn.turnId };
    try {
      for await (const event of events) {
        if (event.kind === "snapshot") reader.push({ name: "text.snapshot", text: event.text });
        else if (event.kind === "piece") reader.push({ name: "text.delta", text: event.text });
        else if (event.kind === "record") reader.push({ name: "record.appended", record: event.record, ...place });
        else reader.finish(await this.#end(event.mark, reader));
      }
    } catch (error) {
      reader.fail(error);
    }
  }

  async #end(mark: TurnMark | null, reader: Attached): Promise<TurnStreamEvent> {
    const place = { ref: this.#ref, turnId: this.#turn.turnId };
    const state = mark?.state ?? "interrupted";
    if (state === "open" || state === "interrupted")
      return { name: "turn.interrupted", interruptedTurn: await this.#interrupted(), ...place };
    reader.push({ name: "turn.closed", outcome: state, ...place });
    const { code = "INTERNAL", message = "The turn failed." } = mark?.error ?? {};
    // The mark has the code of the error that the turn threw.
    if (state === "failed") throw new ThroughlineError(code as ErrorCode, message);
    return { name: "turn.result", turn: await this.#result(state) };
  }

  /** The session may be another one now, or none. */
  async #interrupted(): Promise<InterruptedTurn> {
    const { turnId, owner } = this.#turn;
    try {
      return readInterruptedTurn(await this.#log(), this.#turn, this.#parts.shared.clock.nowMs());
    } catch (error) {
      if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
      return { turnId, owner, sinceMs: null, text: null, pendingApprovals: [] };
    }
  }

  async #result(state: Turn["outcome"]): Promise<Turn> {
    const log = await this.#log();
    const { turnId } = this.#turn;
    const stored = await readKeyedTurn(log, turnId, await this.#firstSeq());
    const { holdBack = null } = this.#parts.options;
    return { ...replayedTurn(log, turnId, { ...stored, state }, holdBack), replayed: false };
  }

  async #firstSeq(): Promise<number> {
    for await (const { records } of this.#parts.options.store.read(this.#ref, { order: "descending" }))
      for (const { seq, record } of records) {
        const mark = readTurnMark(record);
        if (mark?.state === "open" && mark.turnId === this.#turn.turnId) return seq;
      }
    return 1;
  }

  #log(): Promise<SessionLog> {
    return loadLog(this.#ref, this.#parts, { onReplaced: () => {}, onRecord: () => {} });
  }
}
