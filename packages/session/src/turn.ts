import type { AgentTool, ChatDelta, Message, SessionRef, Usage } from "@throughline/core";
import type { Gauge } from "@throughline/tokens";
import type { CallFacts } from "./call-record.ts";
import type { SendDenial } from "./send-denial.ts";
import type { SessionEventListener } from "./session-event.ts";
import type { SessionModel, SystemPrompt } from "./session-options.ts";
import type { TurnOutcome } from "./turn-outcome.ts";

/** A turn that is over. */
export interface Turn {
  /** The id of the turn, which its records carry. */
  readonly turnId: string;
  /** How the turn ended. A failed turn throws instead. */
  readonly outcome: Exclude<TurnOutcome, "failed">;
  /** What the model said last; of an aborted turn what had come. Empty when `holdBack` keeps it from the user. */
  readonly text: string;
  /** Why its last reply ended, in the words of records: `stop`, `length`, `aborted`, …; null without a reply. */
  readonly stopReason: string | null;
  /** Everything the turn put into the session: user, replies, results, in order. */
  readonly messages: readonly Message[];
  /** Of all calls together; null when no provider said anything. */
  readonly usage: Usage | null;
  /** After the turn. */
  readonly gauge: Gauge;
  /** One for each call of the model, failed ones too. */
  readonly calls: readonly CallFacts[];
  /** What denied the answer; null unless the outcome is `denied`. */
  readonly denial: SendDenial | null;
  /** Where it took place: the session's own, or the branch's. */
  readonly ref: SessionRef;
  /** True when a turn with this idempotency key was done before and this is what came of it. */
  readonly replayed: boolean;
  /** True when the words went into a turn that another call runs, by the entry's `queueMode`: all of this is that turn's. */
  readonly joined: boolean;
}

/** A turn that runs somewhere else. */
export interface RunningTurn {
  /** The id of the turn. */
  readonly turnId: string;
  /** The process that holds it, as its lease names it. */
  readonly owner: string;
  /** When its lease ends unless it is renewed, in milliseconds since 1970. */
  readonly leaseUntilMs: number;
}

/** Options of `session.runTurn`. */
export interface RunTurnOptions {
  /** Ends the turn; what was received is kept. */
  readonly signal?: AbortSignal;
  /** Given, answers are streamed. */
  readonly onDelta?: (delta: ChatDelta) => void;
  /** Called with the events of this turn. @default none */
  readonly onEvent?: SessionEventListener;
  /**
   * If another turn is open: wait for it, throw SESSION_BUSY, or continue in a copy of the session from before it.
   * @default waits by the entry's `queueMode` for turns of this process; throws for others
   */
  readonly whenBusy?: "queue" | "reject" | "branch";
  /** How long to wait at most; then SESSION_BUSY. @default 600000 */
  readonly waitMs?: number;
  /** The model of this turn. @default the session's */
  readonly model?: SessionModel;
  /** The system prompt of this turn, or a function that makes it before each call. @default the session's */
  readonly system?: SystemPrompt;
  /** The tools that the model may call in this turn. @default the session's */
  readonly tools?: readonly AgentTool[];
  /** Model calls in this turn, at most. @default the session's */
  readonly maxSteps?: number;
  /** How long this turn may go without a renewal of its lease, in milliseconds. @default the session's */
  readonly leaseMs?: number;
  /**
   * Whether the words mention the agent. In a group whose entry has `groupActivation: "mention"`, words that do not are stored
   * and not answered. @default true
   */
  readonly mentioned?: boolean;
  /** A turn with the same key and input runs once: later ones resume it, or return its result. */
  readonly idempotencyKey?: string;
}

/** Options of `session.resume`. */
export type ResumeOptions = Omit<RunTurnOptions, "idempotencyKey" | "mentioned">;
