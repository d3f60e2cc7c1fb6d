import type { WholeTurnEvent } from "@throughline/session/whole-turn";
import { shellWord, turnHolder } from "@throughline/core/internal";
import { counted, grouped } from "../counted.ts";
import { timeText } from "../time-text.ts";

/** What a person should hear of an event; null for what is as usual. */
export function eventNote(event: WholeTurnEvent): string | null {
  switch (event.name) {
    case "turn.queued":
      return `Waiting for ${event.owner === null ? "the turn before" : turnHolder(event.owner)} to end.`;
    case "turn.branched":
      return `${event.from.key} is busy: this goes on in a copy, ${event.ref.key}`;
    case "session.replaced":
      return `another program reset this session; its key has the new session ${event.newSessionId}`;
    case "session.reset":
      return `a new session begins here: the last message is from ${timeText(event.lastActivityMs)} (session.reset, ${event.reason}); the earlier one is archived, \`throughline show ${event.sessionId}\` shows it`;
    case "send.denied":
      return "the send policy denies answers in this session; the message is stored, and no model is asked";
    case "lease.lost":
      return "another process took the session over; this turn stops";
    case "threshold.crossed":
      return `${event.percent} % of the window is full`;
    case "window.assumed":
      return `the provider does not state the window of ${event.modelId}: ${grouped(event.windowTokens)} tokens are assumed; --window or the setting windowTokens states it`;
    case "history.cut":
      return `the history is longer than the window of ${grouped(event.windowTokens)} tokens: requests begin at record ${event.fromSeq}, without ${counted(event.leftOutMessages, "older message")}; \`throughline show ${shellWord(event.ref.key)} --all\` prints them`;
    case "thinking.unknown":
      return `${event.from === "entry" ? "the entry" : "a record"} names the thinking level ${JSON.stringify(event.level)}, which is none of ${event.known}, and is passed over; \`throughline entry ${shellWord(event.ref.key)} set thinkingLevel high\` sets one`;
    case "guard.shrunk":
      return "the request did not fit and was made smaller; `explain` shows how";
    case "guard.truncation-suspected":
      return "the provider may have cut the request without saying so";
    case "guard.summary-failed":
      return `no summary could be made; ${event.droppedMessages} old messages were left out of this request`;
    case "step.failed":
      return `${event.step} failed: ${causeText(event.cause)}`;
    default:
      return summaryNote(event);
  }
}

/** The same for what is done about a window that fills. */
function summaryNote(event: WholeTurnEvent): string | null {
  switch (event.name) {
    case "compaction.planned":
      return `compacting: ${counted(event.removedMessages, "message")} of ${grouped(event.tokensBefore)} tokens are summarized`;
    case "compaction.replanned":
      return `compacting ${counted(event.removedMessages, "message")} instead`;
    case "compaction.rung-failed":
      return event.rung === "model"
        ? "no model gave a summary"
        : `no summary by ${event.rung}: ${event.problem ?? causeText(event.cause)}`;
    case "compaction.applied": {
      const { tokensBefore, tokensAfter, source, provider, needsRetry } = event;
      const by = provider === null || provider === source ? source : `${source}, ${provider}`;
      return `compacted: ${grouped(tokensBefore)} to ~${grouped(tokensAfter)} tokens (${by})${needsRetry ? "; a better summary is tried later" : ""}`;
    }
    case "compaction.superseded":
      return "another process compacted first; its summary stands";
    case "retry.improved":
      return "a summary that no model had written was replaced by a better one";
    case "retry.failed":
      return event.nextAtMs === null
        ? "no better summary could be made; the poorer one stays"
        : `no better summary yet (${counted(event.attempts, "attempt")})`;
    case "retry.error":
      return `summaries could not be looked at: ${causeText(event.cause)}`;
    default:
      return memoryNote(event);
  }
}

function memoryNote(event: WholeTurnEvent): string | null {
  switch (event.name) {
    case "checkpoint.started":
      return event.due === "asked" ? null : "making a checkpoint";
    case "checkpoint.written":
      return `checkpoint written (${event.writer})`;
    case "checkpoint.writer-failed":
      return `no checkpoint by ${event.writer}: ${causeText(event.cause)}`;
    case "checkpoint.failed":
      return `no checkpoint: ${causeText(event.cause)}`;
    case "flush.asked":
      return event.why === "before-compaction"
        ? "the agent was asked to store what it wants to keep, before the compaction"
        : `the agent was asked to store what it wants to keep (${event.askedPercent} %)`;
    case "flush.ended":
      return event.flushActioned ? "the agent stored memories" : "the agent stored no memories";
    case "flush.failed":
      return "the agent could not answer whether it wants to keep something; it is asked again";
    case "flush.repaired":
      return `memory flush: ${counted(event.repairs.length, "threshold")} could not stay where configured`;
    default:
      return null;
  }
}

export function causeText(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** An event as `--json` shows it: its name and those of its fields that are plain values. */
export function eventObject(event: WholeTurnEvent, message: string): EventObject {
  const { name, ref, ...fields } = event;
  const turnId = "turnId" in fields ? fields.turnId : null;
  const data = Object.fromEntries(
    Object.entries(fields).flatMap(([field, value]) => {
      if (field === "turnId") return [];
      if (field === "cause") return [[field, causeText(value)]];
      return typeof value === "object" && value !== null ? [] : [[field, value]];
    }),
  );
  return { kind: "event", name, key: ref.key, turnId, message, data };
}

export interface EventObject {
  readonly kind: "event";
  readonly name: string;
  readonly key: string;
  readonly turnId: string | null;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
}
