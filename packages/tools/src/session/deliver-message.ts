import { appendOnce, type Clock, hasErrorCode, type SessionRef, type SessionStore } from "@throughline/core";
import type { SessionMessage } from "./session-message.ts";
import { quote, SessionToolRefusal } from "./tool-refusal.ts";

/** Holds a message on its way from one session to another. */
interface SessionDelivery {
  /** Names the target session, which belongs to the same agent. */
  readonly ref: SessionRef;
  /** Holds the message, including its provenance, in the form that the target's transcript stores. */
  readonly message: SessionMessage;
  /** Stays the same when a call is repeated, so that the message is stored once. */
  readonly idempotencyKey: string;
  /** Aborts when the turn that sends the message ends. */
  readonly signal: AbortSignal;
}

/**
 * Delivers a message to its target session. Resolves to the answer when the function also runs a turn of the target.
 * Null means that the target reads the message in its next turn.
 */
export type SessionDeliverer = (delivery: SessionDelivery) => Promise<string | null>;

const pollMs = 100;

/**
 * Appends messages to transcripts and runs no turn. Waits up to `waitMs` for a running turn, because a session in a
 * turn rejects appends.
 */
export function appendDelivery(
  store: SessionStore,
  { clock, waitMs }: { readonly clock: Clock; readonly waitMs: number },
): SessionDeliverer {
  return async ({ ref, message, idempotencyKey, signal }) => {
    const untilMs = clock.nowMs() + waitMs;
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
