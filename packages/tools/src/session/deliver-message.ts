import { appendOnce, type Clock, hasErrorCode, type SessionRef, type SessionStore } from "@throughline/core";
import type { SessionMessage } from "./session-message.ts";
import { quote, SessionToolRefusal } from "./tool-refusal.ts";

/** A message on its way from one session to another. */
export interface SessionDelivery {
  /** Where it goes, of the same agent. */
  readonly ref: SessionRef;
  /** As the target's transcript is to keep it, provenance and all. */
  readonly message: SessionMessage;
  /** The same for a call that is made again. */
  readonly idempotencyKey: string;
  /** Aborted when the turn that sends the message ends. */
  readonly signal: AbortSignal;
}

/**
 * Brings a message to its session. One that also runs the session's turn gives the answer; null: it lies there and is seen
 * with the next turn.
 */
export type SessionDeliverer = (delivery: SessionDelivery) => Promise<string | null>;

const pollMs = 100;

/** Puts messages into transcripts and runs nothing. Waits for a turn that runs, up to `patienceMs`. */
export function appendDelivery(
  store: SessionStore,
  { clock, patienceMs }: { readonly clock: Clock; readonly patienceMs: number },
): SessionDeliverer {
  return async ({ ref, message, idempotencyKey, signal }) => {
    const untilMs = clock.nowMs() + patienceMs;
    for (;;) {
      try {
        await appendOnce(store, ref, [{ type: "message", message }], {
          idempotencyKey,
          entry: { updatedAt: clock.nowMs() },
          signal,
        });
        return null;
      } catch (error) {
        if (hasErrorCode(error, "SESSION_NOT_FOUND", "SESSION_ARCHIVED"))
          throw new SessionToolRefusal("unknown-session", `There is no session ${quote(ref.key)} that you may see.`);
        if (!hasErrorCode(error, "SESSION_BUSY")) throw error;
        if (clock.nowMs() >= untilMs)
          throw new SessionToolRefusal("busy", `${quote(ref.key)} is at work; nothing was sent. Try again later.`);
      }
      await clock.sleep(pollMs, signal);
    }
  };
}
