import type { SessionTranscript, TranscriptOptions } from "./transcript.ts";
import type { AppendResult, OpenTurn, PartialReply, SessionEntry, SessionHead, SessionRef } from "@throughline/core";
import type { SessionDraft } from "@throughline/core/internal";
import type { Repair } from "@throughline/history";
import type { Gauge, Spend } from "@throughline/tokens";
import type { AttachedTurn, AttachOptions } from "./attach-turn.ts";
import type { SessionContent, SessionModel } from "./session-options.ts";
import type { InterruptedTurn, PendingApproval } from "./turn-mark.ts";
import type { TurnStream } from "./turn-stream.ts";
import type { SessionBranch } from "./session-branches.ts";
import type { TurnOutputSchema } from "./output-schema.ts";
import type { BranchTurnOptions, RunTurnOptions, ResumeOptions, TurnResult } from "./turn.ts";

/** Holds the messages that a call would send. */
export interface SessionMessages {
  /** Names the shape of the messages, which is the name of a history target. */
  readonly api: string;
  /** Holds the system prompt for a field of its own. Null when it is one of the messages, or when there is none. */
  readonly system: string | null;
  /** Holds the messages in that shape, as a call would send them. */
  readonly messages: readonly unknown[];
  /** Lists the changes that make the provider accept the messages. */
  readonly repairs: readonly Repair[];
  /** States how full the context window would be. */
  readonly gauge: Gauge;
}

/** Sets the conditions and the entry fields of `session.append`. */
export interface SessionAppendOptions {
  /** Refuses the append unless the head is this record. @default any head */
  readonly expectHead?: string | null | undefined;
  /**
   * Identifies the append. A repeated append with the same key and drafts stores no record and returns the first
   * result.
   */
  readonly idempotencyKey?: string | undefined;
  /** Sets fields of the session entry in the same commit. */
  readonly entry?: Readonly<Record<string, unknown>> | undefined;
  /** Aborts the append if the store has not begun it. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Represents one open conversation. Several handles of one session, in one process or in several, may be used at once.
 */
export interface Session extends AsyncDisposable {
  /** Holds the address of the session: namespace, agent and key. */
  readonly ref: SessionRef;
  /** Holds the session key, in its canonical form. */
  readonly key: string;
  /** Holds the id of the session that the key refers to, which `reset` replaces. */
  readonly sessionId: string;
  /** Counts the messages that existed when the session was opened. */
  readonly restored: {
    /** Counts the user messages in the window. */
    readonly turns: number;
    /** Counts the messages of the whole session. */
    readonly messages: number;
  };
  /** Describes the turn that an ended process left open; null when there is none. */
  readonly interruptedTurn: InterruptedTurn | null;
  /**
   * Holds what was shown of the reply that `interruptedTurn` was writing, as this handle read it on open; null when
   * nothing was shown. The next turn stores it as an aborted reply.
   */
  readonly partialReply: PartialReply | null;
  /**
   * Lists the calls of tools that wait for a decision, as this handle last read them; empty while a turn runs. Another
   * process may have asked. `resume({ approvals })` decides on them. A call whose deadline is over is not listed: the
   * next turn refuses it.
   */
  readonly pendingApprovals: readonly PendingApproval[];
  /** Describes a turn that another handle or process runs, as this handle last read it. Null when there is none. */
  readonly runningTurn: OpenTurn | null;
  /**
   * Names the new session that another handle or process began under the key, as this handle last read it; null
   * otherwise. Until `acceptReset` is called, turns, appends and reads of this handle throw SESSION_REPLACED.
   */
  readonly replacement: {
    /** Holds the id of the session that this handle has open. */
    readonly sessionId: string;
    /** Holds the id of the session that the key now refers to. */
    readonly newSessionId: string;
  } | null;
  /**
   * Holds the title that was made from the conversation, as this handle last read it; null without one. Lists show
   * `entry.label`, which `rename` sets, before it.
   */
  readonly title: string | null;
  /** Holds the session entry, as this handle last read it. */
  readonly entry: SessionEntry;
  /**
   * Adds up the calls that turns of this session made, as this handle last read it: tokens by class and their cost. It
   * does not count calls that another program made.
   */
  readonly spend: Spend;
  /** Holds the newest record of the branch, as this handle last read it. */
  readonly head: SessionHead;
  /** Holds the model of turns that name no other; `setModel` changes it. */
  readonly model: SessionModel;
  /**
   * Runs one turn: stores the user's message, asks the model and runs tools. Every record is stored when it occurs.
   * Resolves when the turn is closed. An aborted turn resolves too, and so does a turn that the send policy denies.
   * @throws {ThroughlineError} SESSION_BUSY, SESSION_REPLACED, TURN_FENCED, CONTEXT_OVERFLOW, MODEL_FAILED, ABORTED
   *   (before it began), and what the store throws. OUTPUT_INVALID for an answer that does not fit `output`.
   *   CAPABILITY_UNSUPPORTED for a `toolChoice` that the provider does not have
   * @example
   * const schema = z.object({ city: z.string(), population: z.number() });
   * const turn = await session.runTurn("The largest city of Austria?", { output: schema });
   * if (turn.outcome === "done") console.log(turn.output.city);
   */
  runTurn<const Schema extends TurnOutputSchema = never>(
    input: SessionContent,
    options?: RunTurnOptions<Schema>,
  ): Promise<TurnResult<Schema>>;
  /**
   * Resumes the last turn without a new message, after it was interrupted, failed, aborted or stopped at its limit, or
   * while its calls wait for a decision. Calls that may have run are answered as interrupted. Calls whose question was
   * open are asked about again.
   *
   * @throws {ThroughlineError} INPUT_INVALID if there is no turn to resume, APPROVAL_DECIDED for a call that waits for
   *   no decision, and the errors of `runTurn`
   * @example
   * const [call] = session.pendingApprovals;
   * if (call !== undefined) await session.resume({ approvals: { [call.callId]: true } });
   */
  resume<const Schema extends TurnOutputSchema = never>(options?: ResumeOptions<Schema>): Promise<TurnResult<Schema>>;
  /**
   * Runs one turn like `runTurn` and streams its events: pieces of the answer, records, calls, tools, and the result.
   * The turn starts at once, even when no consumer reads the events. Leaving the loop aborts the turn.
   *
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED. The loop throws, and `result` rejects with, what
   *   `runTurn` throws
   * @example
   * for await (const event of session.streamTurn("Hello")) if (event.name === "text.delta") process.stdout.write(event.text);
   * @example
   * return session.streamTurn(await request.text()).toResponse(); // server-sent events
   */
  streamTurn<const Schema extends TurnOutputSchema = never>(
    input: SessionContent,
    options?: RunTurnOptions<Schema>,
  ): TurnStream<TurnResult<Schema>>;
  /**
   * Streams the events of a turn that runs already, in this process or another one, such as for a page that was
   * reloaded. The first event is `text.snapshot` with the text so far. Each reader calls `attach`; none of them aborts
   * the turn. From another process come text, records and the result, at most 2 s late, and text of turns that stream.
   *
   * @returns null when no turn runs
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED, and what the store throws. The loop throws what a turn
   *   that failed threw
   * @example
   * const attached = await session.attach();
   * return attached === null ? new Response(null, { status: 204 }) : attached.toResponse();
   */
  attach(options?: AttachOptions): Promise<AttachedTurn | null>;
  /** Resumes the last turn like `resume`, with its decisions, and streams its events like `streamTurn`. */
  streamResume<const Schema extends TurnOutputSchema = never>(
    options?: ResumeOptions<Schema>,
  ): TurnStream<TurnResult<Schema>>;
  /**
   * Asks for another reply to the last message of the user, as a new branch. The earlier reply stays readable: see
   * `branches`. Calls that wait for a decision are left behind, as by `rewind`.
   *
   * @throws {ThroughlineError} INPUT_INVALID without a message of the user, SESSION_BUSY while any turn runs,
   *   APPEND_CONFLICT if the head moved meanwhile, and the errors of `runTurn`
   */
  regenerate<const Schema extends TurnOutputSchema = never>(
    options?: BranchTurnOptions<Schema>,
  ): Promise<TurnResult<Schema>>;
  /**
   * Runs a turn with another version of a message, as a branch that begins where the message does. The message and
   * everything after it stay readable: see `branches`.
   *
   * @param recordId the id of a message of the user, on any branch
   * @throws {ThroughlineError} INPUT_INVALID for another record, RECORD_NOT_FOUND, and the errors of `regenerate`
   * @example
   * const { messages } = await session.transcript();
   * const question = messages.findLast(({ role }) => role === "user");
   * if (question !== undefined) await session.edit(question.recordId, "Name three rivers of Spain.");
   */
  edit<const Schema extends TurnOutputSchema = never>(
    recordId: string,
    content: SessionContent,
    options?: BranchTurnOptions<Schema>,
  ): Promise<TurnResult<Schema>>;
  /** Asks for another reply like `regenerate`, and streams its events like `streamTurn`. */
  streamRegenerate<const Schema extends TurnOutputSchema = never>(
    options?: BranchTurnOptions<Schema>,
  ): TurnStream<TurnResult<Schema>>;
  /** Runs a turn like `edit`, and streams its events like `streamTurn`. */
  streamEdit<const Schema extends TurnOutputSchema = never>(
    recordId: string,
    content: SessionContent,
    options?: BranchTurnOptions<Schema>,
  ): TurnStream<TurnResult<Schema>>;
  /**
   * Moves the head to a record of any branch, so that the next turn continues from there. Nothing is deleted.
   *
   * @param recordId the id of a main record, which is no side record; null moves the head before the first record
   * @throws {ThroughlineError} RECORD_NOT_FOUND, SESSION_BUSY while any turn runs, APPEND_CONFLICT if the head moved
   *   meanwhile, SESSION_CLOSED, SESSION_REPLACED, and what the store throws
   */
  rewind(recordId: string | null): Promise<void>;
  /**
   * Returns to the branch of a record: the head moves to the newest record behind it.
   *
   * @param recordId the id of a main record, such as a `recordId` of `branches`
   * @throws {ThroughlineError} as `rewind`
   */
  switchTo(recordId: string): Promise<void>;
  /**
   * Lists the messages that follow the same message as this one, itself included, the oldest first. Reads the whole
   * session.
   *
   * @param recordId the id of a message of a user or a model, on any branch
   * @throws {ThroughlineError} RECORD_NOT_FOUND, SESSION_CLOSED, SESSION_REPLACED, and what the store throws
   * @example
   * const replies = await session.branches(recordId);
   * const position = replies.findIndex(({ isCurrent }) => isCurrent);
   * console.log(`< ${position + 1}/${replies.length} >`);
   */
  branches(recordId: string): Promise<readonly SessionBranch[]>;
  /**
   * Gives the session a label, which lists show before its title. The empty text removes it. Use `sessions.rename` for
   * another key.
   *
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED, and what the store throws
   */
  rename(label: string): Promise<void>;
  /**
   * Takes back the question about a call that waits for a decision. The call does not run, and the model reads `words`
   * when the turn is resumed. Any process may call it; a decision that came before holds.
   *
   * @param callId the id of a call of `pendingApprovals`
   * @param words what the model reads as the call's result. Default: that the program took its question back
   * @throws {ThroughlineError} APPROVAL_DECIDED, SESSION_BUSY while a turn runs, INPUT_INVALID, SESSION_CLOSED, and what
   *   the store throws
   */
  withdrawApproval(callId: string, words?: string): Promise<void>;
  /** Appends records outside of a turn. */
  append(drafts: readonly SessionDraft[], options?: SessionAppendOptions): Promise<AppendResult>;
  /** Returns the messages that a call would send now, to the session's model or to a model of another provider. */
  messages(api?: string): Promise<SessionMessages>;
  /**
   * Returns the stored messages of the session in a neutral shape, such as for a page that shows the conversation. They
   * begin with the summary of a compaction. With `all`, they hold the summarized messages instead of the summary.
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED, SESSION_REPLACED, ABORTED, and what the store throws
   * @example
   * for (const message of (await session.transcript({ all: true })).messages) console.log(message.seq, message.role);
   */
  transcript(options?: TranscriptOptions): Promise<SessionTranscript>;
  /** Sets the model of later turns. The window is read again when the new model needs another rendering. */
  setModel(model: SessionModel): Promise<void>;
  /** Reads the records that other handles or processes appended. */
  refresh(): Promise<void>;
  /** Begins a new session under the key and archives the old one. */
  reset(): Promise<void>;
  /**
   * Continues in the session that another handle or process began under the key. The earlier session stays archived.
   */
  acceptReset(): Promise<void>;
  /** Aborts a running turn of this handle, and waits for it and for background work. The method may be called again. */
  close(): Promise<void>;
}
