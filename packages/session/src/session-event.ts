import { tellListener } from "@throughline/core/internal";
import type { SessionRef, StoredRecord } from "@throughline/core";
import type { GuardEvent } from "@throughline/guard/internal";
import type { Gauge } from "@throughline/tokens";
import type { CallFacts } from "./call-record.ts";
import type { SendDenial } from "./send-denial.ts";
import type { InterruptedTurn, TurnOutcome } from "./turn-outcome.ts";

/** Of which session and turn an event speaks. */
interface EventPlace {
  /** The session in which it happened. */
  readonly ref: SessionRef;
  /** Null outside of turns. */
  readonly turnId: string | null;
}

/** What happened, without its place. */
export type UnplacedEvent =
  /** The turn waits for the one that runs. `owner` is null for one of this `Sessions`. */
  | {
      readonly name: "turn.queued";
      /** The process that holds the turn, as its owner is named; null for one of this `Sessions`. */
      readonly owner: string | null;
      /**
       * When the other turn's lease ends unless it is renewed, in milliseconds since 1970; null for a turn of this
       * `Sessions`.
       */
      readonly leaseUntilMs: number | null;
    }
  /** The session is busy: the turn goes on in a copy. */
  | {
      readonly name: "turn.branched";
      /** The session that is busy. */
      readonly from: SessionRef;
    }
  /** A process that is gone left a turn open in this session. */
  | {
      readonly name: "turn.interrupted";
      /** The turn that was left, with its owner and its text. */
      readonly interruptedTurn: InterruptedTurn;
    }
  /** The turn holds the session's lease. */
  | {
      readonly name: "turn.opened";
      /** The number of the turn's lease. A later turn has a higher one. */
      readonly fence: number;
      /** The id of the turn that this one continues; null for a new turn. */
      readonly resumes: string | null;
    }
  /** The send policy denies an answer: the model is not asked, or not asked again, and the turn is closed. */
  | ({ readonly name: "send.denied" } & SendDenial)
  /** The turn's closing mark is stored. */
  | {
      readonly name: "turn.closed";
      /** How the turn ended. */
      readonly outcome: TurnOutcome;
    }
  /** The store acknowledged a record of this handle. */
  | {
      readonly name: "record.appended";
      /** The record as it is stored, with its `seq`. */
      readonly record: StoredRecord;
    }
  /** A request is about to be sent to the model. */
  | {
      readonly name: "call.started";
      /** The step of the turn, from 1. */
      readonly step: number;
      /** The attempt within the step, from 0. */
      readonly attempt: number;
      /** The estimate of the whole request. */
      readonly estimatedTokens: number;
    }
  /** A call ended, successful or not, and its facts are known. */
  | {
      readonly name: "call.finished";
      /** The facts that the call's record holds. */
      readonly call: CallFacts;
    }
  /** A tool is about to run. */
  | {
      readonly name: "tool.started";
      /** The id of the tool call, as the model gave it. */
      readonly callId: string;
      /** The name of the tool, as the model wrote it. */
      readonly toolName: string;
    }
  /** `approveTool` kept the call from running. */
  | {
      readonly name: "tool.refused";
      /** The id of the tool call, as the model gave it. */
      readonly callId: string;
      /** The name of the tool, as the model wrote it. */
      readonly toolName: string;
    }
  /** A tool returned or failed. Its result is stored as a record. */
  | {
      readonly name: "tool.finished";
      /** The id of the tool call, as the model gave it. */
      readonly callId: string;
      /** The name of the tool, as the model wrote it. */
      readonly toolName: string;
      /** True when the tool failed or was refused; the model reads the error text. */
      readonly isError: boolean;
    }
  /** A step around the calls is about to run. */
  | {
      readonly name: "step.started";
      /** The step's `name`. */
      readonly step: string;
    }
  /** A step around the calls ended without an error. */
  | {
      readonly name: "step.finished";
      /** The step's `name`. */
      readonly step: string;
    }
  /** A step threw. */
  | {
      readonly name: "step.failed";
      /** The step's `name`. */
      readonly step: string;
      /** What the step threw. */
      readonly cause: unknown;
    }
  /** The prompt that is about to be sent fills so much of the window, for the first time in this cycle. */
  | {
      readonly name: "threshold.crossed";
      /** The configured percentage that was reached, 1 to 100. */
      readonly percent: number;
      /** The gauge of the prompt. */
      readonly gauge: Gauge;
    }
  /** The turn's lease was prolonged. */
  | {
      readonly name: "lease.renewed";
      /** When the lease ends unless it is renewed again, in milliseconds since 1970. */
      readonly leaseUntilMs: number;
    }
  /** Renewing failed for another reason than a takeover; it is tried again. */
  | {
      readonly name: "lease.delayed";
      /** The error of the renewal. */
      readonly cause: unknown;
    }
  /** Another turn took over: this one stops and writes nothing more. */
  | {
      readonly name: "lease.lost";
      /** The error that names the later turn. */
      readonly cause: unknown;
    }
  /** Another handle or process began a new session under the key. This handle writes nothing until `acceptReset`. */
  | {
      readonly name: "session.replaced";
      /** The id of the session that was replaced. */
      readonly sessionId: string;
      /** The id of the session that is now behind the key. */
      readonly newSessionId: string;
    }
  /** The reset policy began a new session under the key, before a turn; the earlier one is archived. */
  | {
      readonly name: "session.reset";
      /** The rule that reset it: an hour of the day, or minutes without activity. */
      readonly reason: "daily" | "idle";
      /** The last activity of the earlier session, in milliseconds since 1970. */
      readonly lastActivityMs: number;
      /** When the reset was due, in milliseconds since 1970. */
      readonly dueAtMs: number;
      /** The id of the session that was archived. */
      readonly sessionId: string;
      /** The id of the session that is now behind the key. */
      readonly newSessionId: string;
    }
  /** The history is longer than the window: requests begin at the message `fromSeq`. The session keeps all of it. */
  | {
      readonly name: "history.cut";
      /** The number of messages of the branch before `fromSeq`, which are not sent. */
      readonly leftOutMessages: number;
      /** The seq of the first message that is sent. */
      readonly fromSeq: number;
      /** The window that the history did not fit. */
      readonly windowTokens: number;
    }
  /** The provider could not be asked for its context window. */
  | {
      readonly name: "window.unread";
      /** The error of the request for the window. */
      readonly cause: unknown;
    }
  /** The provider states no window: `assumedWindowTokens` of the model counts. Once for each model. */
  | {
      readonly name: "window.assumed";
      /** The provider's id of the model. */
      readonly modelId: string;
      /** The window that is assumed, in tokens. */
      readonly windowTokens: number;
    }
  /** The entry or a record names a thinking level that no provider takes: it is passed over. Once a turn. */
  | {
      readonly name: "thinking.unknown";
      /** The level, as it is written there. */
      readonly level: string;
      /** Where the level stands: in the session's entry, or in a record of the branch. */
      readonly from: "entry" | "records";
      /** The levels there are, for people. */
      readonly known: string;
    }
  | GuardEvent;

/** What happens in a session, for those who watch. Events inform and decide nothing; a listener that throws disturbs nothing. */
export type SessionTurnEvent = UnplacedEvent & EventPlace;

/** Called with each event of a turn. */
export type SessionEventListener = (event: SessionTurnEvent) => void;

export type Emit = (event: UnplacedEvent) => void;

/** Calls all listeners; null without listeners, so that no event is created. */
export function createEmit(place: EventPlace, listeners: readonly (SessionEventListener | undefined)[]): Emit | null {
  const present = listeners.filter((listener) => listener !== undefined);
  if (present.length === 0) return null;
  return (event) => {
    const placed = { ...event, ...place };
    for (const listener of present) tellListener(listener, placed);
  };
}
