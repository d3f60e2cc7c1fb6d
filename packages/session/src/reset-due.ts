import { type SessionRef, type SessionState, type SessionStore, ThroughlineError } from "@throughline/core";
import { resetUnchanged, throughlineDraft } from "@throughline/core/internal";
import { planReset, type ResetPlan, type ResetPolicy } from "@throughline/policy";
import { isGone, keyedTurnId } from "./begin-turn.ts";
import { resetEntry } from "./reset-entry.ts";
import type { Emit } from "./session-event.ts";
import type { TurnHost, TurnInput } from "./turn-host.ts";

/** When sessions reset by themselves. */
export interface ResetTimes {
  /** The rules, by kind of conversation and by channel. */
  readonly policy: ResetPolicy;
  /** An IANA zone: daily hours are hours of its clocks. */
  readonly timeZone: string;
  /** The time against which the rules are checked, in milliseconds since 1970. */
  readonly nowMs: number;
}

/** What a reset policy asks for, and what it was held against. */
export interface SessionResetPlan extends ResetPlan {
  /** The time of the newest message, or of the beginning where that is later; without any message, of the last change. */
  readonly lastActivityMs: number;
}

/** A reset policy as it applies to a session now. The newest message is the activity that counts. */
export async function planSessionReset(
  store: SessionStore,
  { ref, entry, messageCount, createdAtMs, updatedAtMs }: SessionState,
  { policy, timeZone, nowMs }: ResetTimes,
): Promise<SessionResetPlan> {
  const messageMs = messageCount === 0 ? null : await newestMessageMs(store, ref);
  // A clock that was set back makes no session older than its beginning: it passes the hour once a day.
  const lastActivityMs = Math.max(messageMs ?? updatedAtMs, createdAtMs);
  const { channel } = entry;
  const question = { policy, key: ref.key, lastActivityMs, nowMs, timeZone };
  const plan = planReset(typeof channel === "string" ? { ...question, channel } : question);
  // There is nothing to begin anew.
  return messageCount === 0 ? { ...plan, isDue: false, reason: null, lastActivityMs } : { ...plan, lastActivityMs };
}

async function newestMessageMs(store: SessionStore, ref: SessionRef): Promise<number | null> {
  for await (const { records } of store.read(ref, { order: "descending", limit: 1000 }))
    for (const { type, side, tsMs } of records) if (type === "message" && !side && tsMs !== null) return tsMs;
  return null;
}

/** Everybody who decides at once sees what the first one did; more tries than that mean an entry that never rests. */
const maxTries = 64;

/**
 * Begins a new session under the key when the policy says that it is time, before a turn with new words. The earlier one is
 * archived. True when the handle is in the new session.
 */
export async function resetIfDue(handle: TurnHost, input: TurnInput, emit: Emit | null): Promise<boolean> {
  const { log, options, shared, ref } = handle;
  const policy = options.reset ?? null;
  // A turn that is resumed belongs to the conversation it was begun in, and so does one that is asked for again.
  if (policy === null || input.drafts === null || isNewestTurn(handle, input)) return false;
  const times = { policy, timeZone: shared.timeZone, nowMs: shared.clock.nowMs() };
  for (let tries = 0; tries < maxTries; tries++) {
    const { sessionId } = handle;
    const state = await log.store.load(ref);
    if (state === null) return false;
    const isReplaced = state.sessionId !== sessionId;
    const old = isReplaced ? await log.store.load({ ...ref, archiveId: sessionId }) : state;
    // Somebody is talking in it, whatever the time of the newest message.
    const isInUse =
      old?.head.turn != null && old.head.turn.leaseUntilMs > times.nowMs && !isGone(old.head.turn, shared);
    if (old === null || isInUse) return false;
    const plan = await planSessionReset(log.store, old, times);
    if (!plan.isDue || plan.reason === null) return false;
    const fresh = isReplaced ? state : await resetUnchanged(log.store, old, { ...shared, keep: resetEntry });
    if (fresh === null) continue;
    await log.acceptReplacement();
    const { reason, lastActivityMs } = plan;
    const facts = { reason, lastActivityMs, dueAtMs: plan.dueAtMs ?? times.nowMs };
    if (!isReplaced)
      await log.append(
        [throughlineDraft("note", { kind: "session-reset", ...facts, previousSessionId: sessionId })],
        {},
      );
    emit?.({ name: "session.reset", ...facts, sessionId, newSessionId: fresh.sessionId });
    return true;
  }
  throw new ThroughlineError(
    "REVISION_CONFLICT",
    `The entry of ${JSON.stringify(ref.key)} is changed without a pause.`,
  );
}

/** Whether the newest turn is the one with this idempotency key. */
function isNewestTurn({ log, sessionId }: TurnHost, { idempotencyKey }: TurnInput): boolean {
  return idempotencyKey !== null && log.facts.turn?.mark.turnId === keyedTurnId(sessionId, idempotencyKey);
}
