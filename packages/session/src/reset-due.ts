import { resetBeforeTurn } from "@throughline/policy/internal";
import { isGone, keyedTurnId } from "./begin-turn.ts";
import type { Emit } from "./session-event.ts";
import type { TurnHost, TurnInput } from "./turn-host.ts";

/**
 * Begins a new session under the key when the policy says that it is time, before a turn with new words. The earlier one is
 * archived. True when the handle is in the new session.
 */
export async function resetIfDue(handle: TurnHost, input: TurnInput, emit: Emit | null): Promise<boolean> {
  const { log, options, shared, ref, sessionId } = handle;
  // A turn that is resumed belongs to the conversation it was begun in, and so does one that is asked for again.
  if (input.drafts === null || isNewestTurn(handle, input)) return false;
  const { clock, random, timeZone } = shared;
  const done = await resetBeforeTurn(log.store, ref, {
    reset: options.reset ?? null,
    timeZone,
    clock,
    random,
    sessionId,
    isGone: (turn) => isGone(turn, shared),
  });
  if (done === null) return false;
  await log.acceptReplacement();
  emit?.({ name: "session.reset", ...done.facts, sessionId, newSessionId: done.fresh.sessionId });
  return true;
}

/** Whether the newest turn is the one with this idempotency key. */
function isNewestTurn({ log, sessionId }: TurnHost, { idempotencyKey }: TurnInput): boolean {
  return idempotencyKey !== null && log.facts.turn?.mark.turnId === keyedTurnId(sessionId, idempotencyKey);
}
