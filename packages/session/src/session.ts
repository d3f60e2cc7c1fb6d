import type { SessionTranscript, TranscriptOptions } from "./transcript.ts";
import type { AppendResult, SessionEntry, SessionHead, SessionRef } from "@throughline/core";
import type { SessionDraft } from "@throughline/core/internal";
import type { Repair } from "@throughline/history";
import type { Gauge } from "@throughline/tokens";
import type { SessionContent, SessionModel } from "./session-options.ts";
import type { InterruptedTurn } from "./turn-outcome.ts";
import type { TurnStream } from "./turn-stream.ts";
import type { Turn, RunningTurn, RunTurnOptions, ResumeOptions } from "./turn.ts";

/** What would be sent. */
export interface SessionMessages {
  /** The shape, by the name of a history target. */
  readonly api: string;
  /** For the request's own field; null where it is among the messages, or there is none. */
  readonly system: string | null;
  /** The messages in that shape, as they would be sent. */
  readonly messages: readonly unknown[];
  /** What was changed so that the provider accepts the messages. */
  readonly repairs: readonly Repair[];
  /** How full the context window would be. */
  readonly gauge: Gauge;
}

/** Options of `session.append`. */
export interface SessionAppendOptions {
  /** Refuses the append unless the head is this record. @default any head */
  readonly expectHead?: string | null;
  /** A repeated append with the same key and drafts stores nothing and returns the first result. */
  readonly idempotencyKey?: string;
  /** Fields to set in the entry in the same commit. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /** Ends the append where the store has not begun it. */
  readonly signal?: AbortSignal;
}

/** One conversation. Handles of one session, in one process or in several, may be used at once. */
export interface Session extends AsyncDisposable {
  /** Where the store has the session: namespace, agent and key. */
  readonly ref: SessionRef;
  /** The session key, in its canonical form. */
  readonly key: string;
  /** The id of the session behind the key, which `reset` replaces. */
  readonly sessionId: string;
  /** What there was when the session was opened: user messages of the window, and messages of the session. */
  readonly restored: {
    /** User messages in the window. */
    readonly turns: number;
    /** Messages of the whole session. */
    readonly messages: number;
  };
  /** What a process that is gone left open; null when there is nothing. */
  readonly interruptedTurn: InterruptedTurn | null;
  /** A turn that another handle or process runs, as far as is known; null when there is none. */
  readonly runningTurn: RunningTurn | null;
  /**
   * Set when another handle or process began a new session under the key, as far as is known; null otherwise. Until
   * `acceptReset` is called, turns, appends and reads of this handle throw SESSION_REPLACED.
   */
  readonly replacement: {
    /** The id of the session that this handle has open. */
    readonly sessionId: string;
    /** The id of the session that is now behind the key. */
    readonly newSessionId: string;
  } | null;
  /** As it was last seen. */
  readonly entry: SessionEntry;
  /** The newest record of the branch, as far as this handle knows. */
  readonly head: SessionHead;
  /** The model of turns that name no other; `setModel` changes it. */
  readonly model: SessionModel;
  /**
   * One turn: the user's words are kept, the model asked, tools run, and every record kept as it happens. Resolves when
   * the turn is closed; an aborted one resolves too, and so does one that the send policy denies.
   * @throws {ThroughlineError} SESSION_BUSY, SESSION_REPLACED, TURN_FENCED, CONTEXT_OVERFLOW, MODEL_FAILED, ABORTED
   *   (before it began), and what the store says
   */
  runTurn(input: SessionContent, options?: RunTurnOptions): Promise<Turn>;
  /**
   * Resumes the last turn, which was interrupted, failed, aborted or stopped at its limit, without a new message. Calls
   * of tools that have no result are answered as interrupted.
   * @throws {ThroughlineError} INPUT_INVALID if there is no turn to resume, and the errors of `runTurn`
   */
  resume(options?: ResumeOptions): Promise<Turn>;
  /**
   * Runs one turn as `runTurn` does and gives its events: pieces of the answer, records, calls, tools, and the result. The turn
   * starts at once, whether the events are read or not. A loop that is left aborts the turn.
   *
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED. The loop throws, and `result` rejects with, what `runTurn` throws
   * @example
   * for await (const event of session.streamTurn("Hello")) if (event.name === "text.delta") process.stdout.write(event.text);
   * @example
   * return session.streamTurn(await request.text()).toResponse(); // server-sent events
   */
  streamTurn(input: SessionContent, options?: RunTurnOptions): TurnStream;
  /** Continues the last turn as `resume` does and gives its events, as `streamTurn`. */
  streamResume(options?: ResumeOptions): TurnStream;
  /** Appends records outside of a turn. */
  append(drafts: readonly SessionDraft[], options?: SessionAppendOptions): Promise<AppendResult>;
  /** What would be sent to the session's model now, or to a model of another provider. */
  messages(api?: string): Promise<SessionMessages>;
  /**
   * The stored messages of the session in the shape that no provider owns, such as for a page that shows the conversation. They
   * start with the summary of what a compaction replaced. With `all`, they have those messages instead.
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED, SESSION_REPLACED, ABORTED, and what the store throws
   * @example
   * for (const message of (await session.transcript({ all: true })).messages) console.log(message.seq, message.role);
   */
  transcript(options?: TranscriptOptions): Promise<SessionTranscript>;
  /** Another model from now on. The window is read again where the provider differs. */
  setModel(model: SessionModel): Promise<void>;
  /** Takes in what others appended. */
  refresh(): Promise<void>;
  /** Begins a new session under the key; the old one is archived. */
  reset(): Promise<void>;
  /** Continues in the session that another handle or process began under the key. The earlier one stays archived. */
  acceptReset(): Promise<void>;
  /** Aborts a turn of this handle that runs, waits for it and for work in the background. May be called again. */
  close(): Promise<void>;
}
