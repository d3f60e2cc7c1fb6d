import type { WholeTurnEvent } from "@throughline/session/whole-turn";
import { causeText, shellWord, turnHolder } from "@throughline/core/internal";
import { counted, grouped } from "../counted.ts";
import { timeText } from "../time-text.ts";

export function eventNote(event: WholeTurnEvent): string | null {
  switch (event.name) {
    case "turn.queued":
      return `Waiting for ${event.owner === null ? "the turn before" : turnHolder(event.owner)} to end.`;
    case "turn.branched":
      return `Session "${event.from.key}" is in use. Continuing in a copy: ${event.ref.key}.`;
    case "session.replaced":
      return `Another program reset this session. Its key leads to the new session ${event.newSessionId}.`;
    case "session.reset":
      return `A new session begins here: the last message is from ${timeText(event.lastActivityMs)} (session.reset, ${event.reason}). The earlier session is archived; \`throughline show ${event.sessionId}\` prints it.`;
    case "turn.recovered":
      return `Recovered ${counted(event.characters, "character")} of the reply that was cut off.`;
    case "call.waiting":
      return `The provider answered ${event.status} and is asked again in ${counted(Math.max(1, Math.round(event.delayMs / 1000)), "second")}.`;
    case "partial.delayed":
      return `The reply is not saved for ${counted(secondsSince(event.sinceMs), "second")}${event.cause === null ? "" : `: ${causeText(event.cause)}`}.`;
    case "send.denied":
      return "The send policy denies answers in this session. The message is stored, and no model is called.";
    case "lease.lost":
      return "Another process took over the session. This turn stops.";
    case "threshold.crossed":
      return `${event.percent} % of the context window is full.`;
    case "window.assumed":
      return `The provider does not state the window of ${event.modelId}; ${grouped(event.windowTokens)} tokens are assumed. Set it with --window or the setting windowTokens.`;
    case "history.cut":
      return `The history is longer than the window of ${grouped(event.windowTokens)} tokens. Requests begin at record ${event.fromSeq}, without ${counted(event.leftOutMessages, "older message")}; \`throughline show ${shellWord(event.ref.key)} --all\` prints them.`;
    case "thinking.unknown":
      return `${event.from === "entry" ? "The entry" : "A record"} names the thinking level ${JSON.stringify(event.level)}, which is not one of ${event.known}. It is ignored; \`throughline entry ${shellWord(event.ref.key)} set thinkingLevel high\` sets one.`;
    case "guard.shrunk":
      return `The request did not fit and was made smaller; \`throughline explain ${shellWord(event.ref.key)}\` shows how, as does /explain in a conversation.`;
    case "guard.truncation-suspected":
      return "The provider may have cut the request without reporting it.";
    case "guard.summary-failed":
      return `No summary could be written. This request goes without ${counted(event.droppedMessages, "older message")}.`;
    case "step.failed":
      return `The step ${event.step} failed: ${causeText(event.cause)}`;
    default:
      return summaryNote(event);
  }
}

function secondsSince(sinceMs: number): number {
  return Math.max(1, Math.round((Date.now() - sinceMs) / 1000));
}

function summaryNote(event: WholeTurnEvent): string | null {
  switch (event.name) {
    case "compaction.planned":
      return `Summarizing ${counted(event.removedMessages, "older message")}; ${grouped(event.keptMessages)} stay word for word.`;
    case "compaction.replanned":
      return `Summarizing ${counted(event.removedMessages, "older message")} instead.`;
    case "compaction.rung-failed":
      return event.rung === "model"
        ? "No model wrote a summary."
        : `No summary by ${event.rung}: ${event.problem ?? causeText(event.cause)}`;
    case "compaction.applied": {
      const { tokensBefore, tokensAfter, source, provider, needsRetry } = event;
      const by = provider === null || provider === source ? source : `${source}, ${provider}`;
      return `Summarized the older messages (${by}). ${grouped(tokensBefore)} → ~${grouped(tokensAfter)} tokens.${needsRetry ? " A model writes a better summary later." : ""}`;
    }
    case "compaction.superseded":
      return "Another process summarized first; its summary is used.";
    case "retry.improved":
      return "A model wrote a better summary; it replaces the first one.";
    case "retry.failed":
      return event.nextAtMs === null
        ? "No model could write a better summary; the first one stays."
        : `No better summary yet (${counted(event.attempts, "attempt")}).`;
    case "retry.error":
      return `The search for summaries to improve failed: ${causeText(event.cause)}`;
    default:
      return memoryNote(event);
  }
}

function memoryNote(event: WholeTurnEvent): string | null {
  switch (event.name) {
    case "checkpoint.started":
      return event.due === "asked" ? null : "Writing a checkpoint.";
    case "checkpoint.written":
      return `Wrote a checkpoint (${event.writer}).`;
    case "checkpoint.writer-failed":
      return `No checkpoint by ${event.writer}: ${causeText(event.cause)}`;
    case "checkpoint.failed":
      return `No checkpoint was written: ${causeText(event.cause)}`;
    case "flush.asked":
      return event.why === "before-compaction"
        ? "Asked the agent to store what it wants to keep, before the compaction."
        : `Asked the agent to store what it wants to keep (${event.askedPercent} %).`;
    case "flush.ended":
      return event.flushActioned ? "The agent stored memories." : "The agent stored no memories.";
    case "flush.failed":
      return "The agent could not answer what it wants to keep. The question is repeated later.";
    case "flush.repaired":
      return `Memory flush: ${counted(event.repairs.length, "threshold")} had to be moved.`;
    default:
      return null;
  }
}

/** `--json` shows the event's name and its plain fields; nested values are omitted. */
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
