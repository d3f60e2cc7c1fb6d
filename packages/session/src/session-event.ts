import { tellListener } from "@throughline/core/internal";
import type { SessionRef, StoredRecord } from "@throughline/core";
import type { GuardEvent } from "@throughline/guard/internal";
import type { Gauge } from "@throughline/tokens";
import type { CallFacts } from "./call-record.ts";
import type { SendDenial } from "./send-denial.ts";
import type { InterruptedTurn, PendingApproval, TurnOutcome } from "./turn-mark.ts";

/** Names the session and the turn of an event. */
interface EventPlace {
  /** Names the session in which the event happened. */
  readonly ref: SessionRef;
  /** Holds the turn id; null outside of turns. */
  readonly turnId: string | null;
}

/** Holds an event without its session and turn. */
export type UnplacedEvent =
  /** Reports that the turn waits for another running turn. */
  | {
      readonly name: "turn.queued";
      /** Names the process that holds the other turn; null for a turn of this `Sessions`. */
      readonly owner: string | null;
      /**
       * States when the other turn's lease ends unless it is renewed, in milliseconds since 1970. Null for a turn of
       * this `Sessions`.
       */
      readonly leaseUntilMs: number | null;
    }
  /** Reports that the session is busy and the turn continues in a copy. */
  | {
      readonly name: "turn.branched";
      /** Names the session that is busy. */
      readonly from: SessionRef;
    }
  /** Reports that an ended process left a turn open in this session. */
  | {
      readonly name: "turn.interrupted";
      /** Describes the turn that was left open, with its owner and its text. */
      readonly interruptedTurn: InterruptedTurn;
    }
  /** Reports that what was shown of that turn's last reply is stored, as an aborted reply. */
  | {
      readonly name: "turn.recovered";
      /** Holds the id of the turn that was left open. `turnId` names the turn that recovers it. */
      readonly recoveredTurnId: string;
      /** Counts the characters of the reply that were recovered. */
      readonly characters: number;
    }
  /** Reports that the text of the open reply could not be kept in time. A crash now would lose it. */
  | {
      readonly name: "partial.delayed";
      /** States since when text is shown that is not stored, in UTC milliseconds. */
      readonly sinceMs: number;
      /** Holds the error of the write; null while the write runs. An error that stays ends the writing. */
      readonly cause: unknown;
    }
  /** Reports that the turn holds the session's lease. */
  | {
      readonly name: "turn.opened";
      /** Holds the fence of the turn. A later turn has a higher one. */
      readonly fence: number;
      /** Holds the id of the turn that this one continues; null for a new turn. */
      readonly resumes: string | null;
    }
  /**
   * Reports that the send policy denies an answer. The model is not asked, or not asked again, and the turn is closed.
   */
  | ({ readonly name: "send.denied" } & SendDenial)
  /** Reports that the turn's closing mark is stored. */
  | {
      readonly name: "turn.closed";
      /** States how the turn ended. */
      readonly outcome: TurnOutcome;
    }
  /** Reports that the store acknowledged a record of this handle. */
  | {
      readonly name: "record.appended";
      /** Holds the stored record, with its `seq`. */
      readonly record: StoredRecord;
    }
  /** Reports that a request is about to be sent to the model. */
  | {
      readonly name: "call.started";
      /** Counts the steps of the turn, from 1. */
      readonly step: number;
      /** Counts the attempts of the step, from 0. */
      readonly attempt: number;
      /** Holds the estimate of the whole request, in tokens. */
      readonly estimatedTokens: number;
    }
  /** Reports that the provider failed for now and is asked again after a wait. Each wait of a call is reported. */
  | {
      readonly name: "call.waiting";
      /** States the length of the wait, in milliseconds. */
      readonly delayMs: number;
      /** States the HTTP status of the provider's answer. */
      readonly status: number;
      /** Counts the attempts of the provider's SDK so far, from 1. */
      readonly attempt: number;
    }
  /** Reports that a call ended, successful or not. */
  | {
      readonly name: "call.finished";
      /** Holds the facts that the call's record stores. */
      readonly call: CallFacts;
    }
  /** Reports that a tool is about to run. */
  | {
      readonly name: "tool.started";
      /** Holds the id of the tool call, as the model stated it. */
      readonly callId: string;
      /** Holds the name of the tool, as the model wrote it. */
      readonly toolName: string;
    }
  /** Reports that `approveTool` kept the call from running. */
  | {
      readonly name: "tool.refused";
      /** Holds the id of the tool call, as the model stated it. */
      readonly callId: string;
      /** Holds the name of the tool, as the model wrote it. */
      readonly toolName: string;
    }
  /** Reports that the turn ended and calls of tools wait for a decision. `session.resume` continues it. */
  | {
      readonly name: "approval.waiting";
      /** Lists the calls that wait. */
      readonly approvals: readonly PendingApproval[];
    }
  /** Reports that a tool returned or failed. Its result is stored as a record. */
  | {
      readonly name: "tool.finished";
      /** Holds the id of the tool call, as the model stated it. */
      readonly callId: string;
      /** Holds the name of the tool, as the model wrote it. */
      readonly toolName: string;
      /** States whether the tool failed. The model reads the error text. */
      readonly isError: boolean;
    }
  /** Reports that a step around the calls is about to run. */
  | {
      readonly name: "step.started";
      /** Holds the `name` of the step. */
      readonly step: string;
    }
  /** Reports that a step around the calls ended without an error. */
  | {
      readonly name: "step.finished";
      /** Holds the `name` of the step. */
      readonly step: string;
    }
  /** Reports that a step threw. */
  | {
      readonly name: "step.failed";
      /** Holds the `name` of the step. */
      readonly step: string;
      /** Holds the error that the step threw. */
      readonly cause: unknown;
    }
  /** Reports that the next prompt reaches a configured percentage of the window for the first time in this cycle. */
  | {
      readonly name: "threshold.crossed";
      /** Holds the configured percentage that was reached, 1 to 100. */
      readonly percent: number;
      /** Holds the gauge of the prompt. */
      readonly gauge: Gauge;
    }
  /** Reports that the turn's lease was renewed. */
  | {
      readonly name: "lease.renewed";
      /** States when the lease ends unless it is renewed again, in milliseconds since 1970. */
      readonly leaseUntilMs: number;
    }
  /** Reports that a renewal failed for another reason than a takeover. The renewal is tried again. */
  | {
      readonly name: "lease.delayed";
      /** Holds the error of the renewal. */
      readonly cause: unknown;
    }
  /** Reports that another turn took over. This turn stops and writes no further record. */
  | {
      readonly name: "lease.lost";
      /** Holds the error that names the later turn. */
      readonly cause: unknown;
    }
  /**
   * Reports that another handle or process began a new session under the key. This handle writes no record until
   * `acceptReset`.
   */
  | {
      readonly name: "session.replaced";
      /** Holds the id of the session that was replaced. */
      readonly sessionId: string;
      /** Holds the id of the session that the key now refers to. */
      readonly newSessionId: string;
    }
  /**
   * Reports that the reset policy began a new session under the key, before a turn. The earlier session is archived.
   */
  | {
      readonly name: "session.reset";
      /** States the rule that applied: an hour of the day, or minutes without activity. */
      readonly reason: "daily" | "idle";
      /** States the last activity of the earlier session, in milliseconds since 1970. */
      readonly lastActivityMs: number;
      /** States when the reset was due, in milliseconds since 1970. */
      readonly dueAtMs: number;
      /** Holds the id of the session that was archived. */
      readonly sessionId: string;
      /** Holds the id of the session that the key now refers to. */
      readonly newSessionId: string;
    }
  /**
   * Reports that the history is longer than the window, so requests begin at the message `fromSeq`. The session keeps
   * the whole history.
   */
  | {
      readonly name: "history.cut";
      /** Counts the messages of the branch before `fromSeq`, which are not sent. */
      readonly leftOutMessages: number;
      /** Holds the seq of the first message that is sent. */
      readonly fromSeq: number;
      /** Holds the window that the history did not fit, in tokens. */
      readonly windowTokens: number;
    }
  /** Reports that the request for the provider's context window failed. */
  | {
      readonly name: "window.unread";
      /** Holds the error of the request for the window. */
      readonly cause: unknown;
    }
  /**
   * Reports that the provider states no window, so `assumedWindowTokens` of the model is used. Emitted once for each
   * model.
   */
  | {
      readonly name: "window.assumed";
      /** Holds the provider's id of the model. */
      readonly modelId: string;
      /** Holds the assumed window, in tokens. */
      readonly windowTokens: number;
    }
  /**
   * Reports that the entry or a record names a thinking level that does not exist. The level is ignored. Emitted once a
   * turn.
   */
  | {
      readonly name: "thinking.unknown";
      /** Holds the level as the entry or the record states it. */
      readonly level: string;
      /** States whether the level is in the session's entry or in a record of the branch. */
      readonly from: "entry" | "records";
      /** Lists the valid levels, for people. */
      readonly known: string;
    }
  | GuardEvent;

/**
 * Describes an event of a session. Events only inform: a listener cannot change a turn, and an error that it throws is
 * ignored.
 */
export type SessionTurnEvent = UnplacedEvent & EventPlace;

/** Receives each event of a turn. */
export type SessionEventListener = (event: SessionTurnEvent) => void;

export type Emit = (event: UnplacedEvent) => void;

/** Returns null without listeners, so that no event is created. */
export function createEmit(place: EventPlace, listeners: readonly (SessionEventListener | undefined)[]): Emit | null {
  const present = listeners.filter((listener) => listener !== undefined);
  if (present.length === 0) return null;
  return (event) => {
    const placed = { ...event, ...place };
    for (const listener of present) tellListener(listener, placed);
  };
}
