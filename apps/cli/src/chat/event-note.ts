import type { SessionTurnEvent } from "@throughline/session";

/** What a person should hear of an event; null for what is as usual. */
export function eventNote(event: SessionTurnEvent): string | null {
  switch (event.name) {
    case "turn.queued":
      return `waiting for ${event.owner ?? "the turn before"} to end`;
    case "turn.branched":
      return `${event.from.key} is busy: this goes on in a copy, ${event.ref.key}`;
    case "lease.lost":
      return "another process took the session over; this turn stops";
    case "threshold.crossed":
      return `${event.percent} % of the window is full`;
    case "guard.shrunk":
      return "the request did not fit and was made smaller; `explain` shows how";
    case "guard.truncation-suspected":
      return "the provider may have cut the request without saying so";
    case "guard.summary-failed":
      return `no summary could be made; ${event.droppedMessages} old messages were left out of this request`;
    case "step.failed":
      return `${event.step} failed: ${event.cause instanceof Error ? event.cause.message : String(event.cause)}`;
    default:
      return null;
  }
}
