import type { AgentTool, ChatDelta, Message, SessionRef, Usage } from "@throughline/core";
import type { ToolChoice } from "@throughline/core/internal";
import type { Gauge } from "@throughline/tokens";
import type { CallFacts } from "./call-record.ts";
import type { SendDenial } from "./send-denial.ts";
import type { SessionEventListener } from "./session-event.ts";
import type { ApprovalAnswer, SessionModel, SystemPrompt } from "./session-options.ts";
import type { TurnOutcome } from "./turn-mark.ts";
import type { TurnOutputSchema, TurnOutputValue } from "./output-schema.ts";

/** Holds the result of a turn. */
export interface Turn {
  /** Holds the turn id, which the records of the turn carry. */
  readonly turnId: string;
  /** States how the turn ended. A failed turn throws instead. */
  readonly outcome: Exclude<TurnOutcome, "failed">;
  /**
   * Holds the text of the model's last reply, or of an aborted turn the part that arrived. Empty when `holdBack`
   * withholds the reply.
   */
  readonly text: string;
  /**
   * Holds the checked answer of a turn with `output`. Undefined without that option, and when the outcome is not
   * `done`.
   */
  readonly output: unknown;
  /**
   * States why the last reply ended, in the words of the record format: `stop`, `length`, `aborted`, …; null without a
   * reply.
   */
  readonly stopReason: string | null;
  /** Holds the messages that the turn stored, in order: user messages, replies and tool results. */
  readonly messages: readonly Message[];
  /** Sums the usage of all calls; null when no provider reported any. */
  readonly usage: Usage | null;
  /**
   * States what these calls cost, in US dollars at the usual prices of the catalog. Null when no provider reported any
   * usage, and when the price of a model is unknown.
   */
  readonly costUsd: number | null;
  /** Holds the gauge after the turn. */
  readonly gauge: Gauge;
  /** Holds one entry for each call of the model, including failed ones. */
  readonly calls: readonly CallFacts[];
  /** States why the answer was denied; null unless the outcome is `denied`. */
  readonly denial: SendDenial | null;
  /** Names the session in which the turn ran: the session itself, or its branch. */
  readonly ref: SessionRef;
  /** Is true when a turn with this idempotency key ran before and this is its result. */
  readonly replayed: boolean;
  /**
   * Is true when another running turn took over the message, by the entry's `queueMode`. All fields are then those of
   * that turn.
   */
  readonly joined: boolean;
}

/** Holds the result of a turn with the `output` option: a turn that is done has the answer. */
type OutputTurn<Output> = Omit<Turn, "output" | "outcome"> &
  (
    | {
        /** States that the turn has its answer. */
        readonly outcome: "done";
        /** Holds the checked answer. */
        readonly output: Output;
      }
    | {
        /** States how the turn ended without an answer. */
        readonly outcome: Exclude<Turn["outcome"], "done">;
        /** A turn that is not done has no answer. */
        readonly output: undefined;
      }
  );

/** Types the result of a turn by the schema of its `output`. Without a schema, or one that is known, it is a `Turn`. */
export type TurnResult<Schema extends TurnOutputSchema> = [Schema] extends [never]
  ? Turn
  : [TurnOutputSchema] extends [Schema]
    ? Turn
    : OutputTurn<TurnOutputValue<Schema>>;

/** Sets the model, the limits and the waiting of `session.runTurn`. */
export interface RunTurnOptions<Schema extends TurnOutputSchema = TurnOutputSchema> {
  /** Aborts the turn; the part of the answer that was received is stored. */
  readonly signal?: AbortSignal | undefined;
  /** Receives the pieces of answers while they arrive. @default none: answers are not streamed */
  readonly onDelta?: ((delta: ChatDelta) => void) | undefined;
  /** Receives the events of this turn. @default none */
  readonly onEvent?: SessionEventListener | undefined;
  /**
   * States how to treat another open turn: wait for it, throw SESSION_BUSY, or continue in a copy of the session from
   * before that turn.
   * @default waits by the entry's `queueMode` for turns of this process; throws for other turns
   */
  readonly whenBusy?: "queue" | "reject" | "branch" | undefined;
  /**
   * States how the message waits for a running turn of this process. With `followup` it has a turn of its own. With
   * `steer` the running turn's next call has it; without a next call it has a turn of its own.
   * @default the entry's `queueMode`
   */
  readonly queue?: "followup" | "steer" | undefined;
  /** Limits the wait, in milliseconds; then SESSION_BUSY. @default 600000 */
  readonly waitMs?: number | undefined;
  /** Sets the model of this turn. @default the session's */
  readonly model?: SessionModel | undefined;
  /** Sets the system prompt of this turn, or a function that returns it before each call. @default the session's */
  readonly system?: SystemPrompt | undefined;
  /** Lists the tools that the model may call in this turn. @default the session's */
  readonly tools?: readonly AgentTool[] | undefined;
  /**
   * States whether the model calls tools in this turn. `required` and `{ tool }` hold for the first call of the model;
   * later calls of the turn are free, so that the turn can end.
   * @default "auto"
   */
  readonly toolChoice?: ToolChoice | undefined;
  /**
   * Asks for an answer that fits the schema of an object. The provider's own JSON mode is used where it has one for the
   * model and the schema, and a tool otherwise. An answer that does not fit is corrected once by the model.
   * @default an answer in text
   */
  readonly output?: Schema | undefined;
  /** Limits the model calls in this turn. @default the session's */
  readonly maxSteps?: number | undefined;
  /**
   * Sets the length of this turn's lease, in milliseconds. The lease is renewed after each third of it.
   * @default the session's
   */
  readonly leaseMs?: number | undefined;
  /**
   * States whether the message mentions the agent. In a group whose entry has `groupActivation: "mention"`, other
   * messages are stored and not answered.
   * @default true
   */
  readonly mentioned?: boolean | undefined;
  /**
   * States what a message does to calls that wait for a decision: `refuse` refuses them, and the model reads that the
   * user answered instead of deciding. `reject` throws APPROVAL_PENDING and stores nothing.
   * @default "refuse"
   */
  readonly whenWaiting?: "refuse" | "reject" | undefined;
  /**
   * Identifies the input. A turn with the same key and input runs once: later calls resume it, or return its result.
   */
  readonly idempotencyKey?: string | undefined;
}

/** Sets the model and the limits of `session.edit` and `session.regenerate`, which never wait for another turn. */
export type BranchTurnOptions<Schema extends TurnOutputSchema = TurnOutputSchema> = Omit<
  RunTurnOptions<Schema>,
  "whenBusy" | "queue" | "waitMs" | "mentioned" | "whenWaiting" | "idempotencyKey"
>;

/** Holds the decisions on calls that wait, by the ids of the calls. */
export type ApprovalAnswers = Readonly<Record<string, ApprovalAnswer>>;

/** Sets the decisions, the model, the limits and the waiting of `session.resume`. */
export interface ResumeOptions<Schema extends TurnOutputSchema = TurnOutputSchema> extends Omit<
  RunTurnOptions<Schema>,
  "idempotencyKey" | "mentioned" | "queue" | "whenWaiting"
> {
  /**
   * Decides on calls of `session.pendingApprovals`. Each decision is stored before its tool runs. Calls without a
   * decision keep waiting.
   * @default the decisions in the log; `approveTool` is asked again about calls whose question a process left open
   */
  readonly approvals?: ApprovalAnswers | undefined;
  /**
   * Asks for the rest of a reply that was cut off after at least 80 characters, rather than for the whole reply again.
   * The rest is a reply of its own: show both texts as one.
   * @default false
   */
  readonly continueReply?: boolean | undefined;
}
