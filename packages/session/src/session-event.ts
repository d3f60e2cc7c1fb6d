import { tellListener } from "@throughline/core/internal";
import type { SessionRef, StoredRecord } from "@throughline/core";
import type { GuardEvent } from "@throughline/guard";
import type { Gauge } from "@throughline/tokens";
import type { CallFacts } from "./call-record.ts";
import type { SendDenial } from "./send-denial.ts";
import type { InterruptedTurn, TurnOutcome } from "./turn-outcome.ts";

/** Of which session and turn an event speaks. */
interface EventPlace {
  readonly ref: SessionRef;
  /** Null outside of turns. */
  readonly turnId: string | null;
}

/** What happened, without its place. */
export type UnplacedEvent =
  /** The turn waits for the one that runs. `owner` is null for one of this `Sessions`. */
  | { readonly name: "turn.queued"; readonly owner: string | null; readonly leaseUntilMs: number | null }
  /** The session is busy: the turn goes on in a copy. */
  | { readonly name: "turn.branched"; readonly from: SessionRef }
  | { readonly name: "turn.interrupted"; readonly interruptedTurn: InterruptedTurn }
  | { readonly name: "turn.opened"; readonly fence: number; readonly resumes: string | null }
  /** The send policy denies an answer: the model is not asked, or not asked again, and the turn is closed. */
  | ({ readonly name: "send.denied" } & SendDenial)
  | { readonly name: "turn.closed"; readonly outcome: TurnOutcome }
  | { readonly name: "record.appended"; readonly record: StoredRecord }
  | { readonly name: "call.started"; readonly step: number; readonly attempt: number; readonly estimatedTokens: number }
  | { readonly name: "call.finished"; readonly call: CallFacts }
  | { readonly name: "tool.started"; readonly callId: string; readonly toolName: string }
  /** `approveTool` kept the call from running. */
  | { readonly name: "tool.refused"; readonly callId: string; readonly toolName: string }
  | { readonly name: "tool.finished"; readonly callId: string; readonly toolName: string; readonly isError: boolean }
  | { readonly name: "step.started"; readonly step: string }
  | { readonly name: "step.finished"; readonly step: string }
  | { readonly name: "step.failed"; readonly step: string; readonly cause: unknown }
  /** The prompt that is about to be sent fills so much of the window, for the first time in this cycle. */
  | { readonly name: "threshold.crossed"; readonly percent: number; readonly gauge: Gauge }
  | { readonly name: "lease.renewed"; readonly leaseUntilMs: number }
  /** Renewing failed for another reason than a takeover; it is tried again. */
  | { readonly name: "lease.delayed"; readonly cause: unknown }
  /** Another turn took over: this one stops and writes nothing more. */
  | { readonly name: "lease.lost"; readonly cause: unknown }
  /** Another handle or process began a new session under the key. This handle writes nothing until `acceptReset`. */
  | { readonly name: "session.replaced"; readonly sessionId: string; readonly newSessionId: string }
  /** The reset policy began a new session under the key, before a turn; the earlier one is archived. */
  | {
      readonly name: "session.reset";
      readonly reason: "daily" | "idle";
      readonly lastActivityMs: number;
      readonly dueAtMs: number;
      readonly sessionId: string;
      readonly newSessionId: string;
    }
  /** The history is longer than the window: requests begin at the message `fromSeq`. The session keeps all of it. */
  | {
      readonly name: "history.cut";
      readonly leftOutMessages: number;
      readonly fromSeq: number;
      readonly windowTokens: number;
    }
  | { readonly name: "window.unread"; readonly cause: unknown }
  /** The provider states no window: `assumedWindowTokens` of the model counts. Once for each model. */
  | { readonly name: "window.assumed"; readonly modelId: string; readonly windowTokens: number }
  /** The entry or a record names a thinking level that no provider takes: it is passed over. Once a turn. */
  | {
      readonly name: "thinking.unknown";
      readonly level: string;
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
