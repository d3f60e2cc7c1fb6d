import { resetBeforeTurn } from "@throughline/policy/internal";
import { isGone, keyedTurnId } from "./begin-turn.ts";
import type { Emit } from "./session-event.ts";
import type { TurnHost, TurnInput } from "./turn-host.ts";

/**
 * Begins a new session under the key when the reset policy requires it, before a turn with a new message. The earlier
 * session is archived. True when the handle is in the new session.
 */
export async function resetIfDue(handle: TurnHost, input: TurnInput, emit: Emit | null): Promise<boolean> {
  const { log, options, shared, ref, sessionId } = handle;
  // A resumed or repeated turn belongs to the conversation in which it was begun, and a branch to its records.
  if (input.drafts === null || input.branch !== undefined || isNewestTurn(handle, input)) return false;
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

/** Only a turn that the log already holds can be a repeat. */
function isNewestTurn({ log, sessionId }: TurnHost, { idempotencyKey }: TurnInput): boolean {
  return idempotencyKey !== null && log.facts.turn?.mark.turnId === keyedTurnId(sessionId, idempotencyKey);
}
