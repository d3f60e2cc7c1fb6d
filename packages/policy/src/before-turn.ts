import {
  appendOnce,
  type Clock,
  hasErrorCode,
  type OpenTurn,
  type RandomSource,
  type SessionEntry,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { resetUnchanged } from "./reset-unchanged.ts";
import { throughlineDraft } from "@throughline/core/internal";
import { planReset, type ResetPlan } from "./plan-reset.ts";
import { resetEntry } from "./reset-entry.ts";
import type { ResetPolicy } from "./reset-policy.ts";
import { resolveSendPolicy, type SendPolicyAnswer } from "./resolve-send-policy.ts";
import type { SendPolicy } from "./send-policy.ts";

/**
 * Returns the part of the policy that denies an answer in a session, or null when the agent may answer. A session that
 * does not exist has no entry.
 */
export function sendDenialOf(
  { ref: { key }, entry }: { readonly ref: SessionRef; readonly entry: SessionEntry | null },
  policy: SendPolicy | null,
): Pick<SendPolicyAnswer, "source" | "ruleIndex" | "mode"> | null {
  const { action, source, ruleIndex, mode } = answerFor(key, entry, policy);
  return action === "allow" ? null : { source, ruleIndex, mode };
}

function answerFor(key: string, entry: SessionEntry | null, policy: SendPolicy | null): SendPolicyAnswer {
  try {
    return resolveSendPolicy({ key, entry, policy });
  } catch (error) {
    if (!hasErrorCode(error, "KEY_INVALID")) throw error;
    // Another program wrote a key that does not parse, so no rule can match it. Only the session's setting and the
    // default count.
    return resolveSendPolicy({ key: "main", entry, policy: policy === null ? null : { ...policy, rules: [] } });
  }
}

/** Sets the rules and the clock by which sessions reset automatically. */
export interface ResetTimes {
  /** Sets the rules, by kind of conversation and by channel. */
  readonly policy: ResetPolicy;
  /** Sets the IANA time zone in which daily hours are read. */
  readonly timeZone: string;
  /** Sets the time against which the rules are checked, in milliseconds since 1970. */
  readonly nowMs: number;
}

/** Extends a reset plan with the activity time that the policy was checked against. */
export interface SessionResetPlan extends ResetPlan {
  /**
   * States the time of the newest message, or of the session's start when that is later. Without a message it is the
   * time of the last change.
   */
  readonly lastActivityMs: number;
}

/** Applies a reset policy to a session at a given time. Only the newest message counts as activity. */
export async function planSessionReset(
  store: SessionStore,
  { ref, entry, messageCount, createdAtMs, updatedAtMs }: SessionState,
  { policy, timeZone, nowMs }: ResetTimes,
): Promise<SessionResetPlan> {
  const messageMs = messageCount === 0 ? null : await newestMessageMs(store, ref);
  // A clock that was set back must not make a session older than its start, or the daily hour would pass twice.
  const lastActivityMs = Math.max(messageMs ?? updatedAtMs, createdAtMs);
  const { channel } = entry;
  const question = { policy, key: ref.key, lastActivityMs, nowMs, timeZone };
  const plan = planReset(typeof channel === "string" ? { ...question, channel } : question);
  // A session without messages never resets, because a reset would only replace one empty session with another.
  return messageCount === 0 ? { ...plan, isDue: false, reason: null, lastActivityMs } : { ...plan, lastActivityMs };
}

async function newestMessageMs(store: SessionStore, ref: SessionRef): Promise<number | null> {
  for await (const { records } of store.read(ref, { order: "descending", limit: 1000 }))
    for (const { type, side, tsMs } of records) if (type === "message" && !side && tsMs !== null) return tsMs;
  return null;
}

export interface ResetBeforeTurn {
  /** Null disables automatic resets. */
  readonly reset: ResetPolicy | null;
  /** Sets the IANA time zone for daily hours. @default the system's */
  readonly timeZone?: string | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Names entry fields that the new session keeps, in addition to the fields that every reset keeps. @default none */
  readonly keeps?: readonly string[];
  /** Names the session that the caller has opened under the key. @default the one that the key has */
  readonly sessionId?: string;
  /**
   * Returns true when the process that opened the turn has ended, although its lease has not expired.
   * @default the lease alone decides
   */
  readonly isGone?: (turn: OpenTurn) => boolean;
  /**
   * Decides about a reset that is due. False leaves the session unchanged, and an error ends the call.
   * @default true
   */
  readonly mayReset?: (state: SessionState) => boolean | Promise<boolean>;
}

export interface DoneReset {
  readonly fresh: SessionState;
  readonly facts: { readonly reason: "daily" | "idle"; readonly lastActivityMs: number; readonly dueAtMs: number };
}

/**
 * Callers that decide at the same time see each other's reset. More tries than this mean that the entry changes without
 * pause.
 */
const maxTries = 64;

/**
 * Starts a new session under the key when the policy says that a reset is due. The earlier session is archived, and a
 * note in the new session names it. Returns null when no reset was due. A session that another caller has already reset
 * is not reset again.
 * @throws {ThroughlineError} REVISION_CONFLICT; what the store and `mayReset` throw
 */
export async function resetBeforeTurn(
  store: SessionStore,
  ref: SessionRef,
  { reset: policy, clock, random, ...given }: ResetBeforeTurn,
): Promise<DoneReset | null> {
  if (policy === null || isNever(policy) || ref.archiveId !== undefined) return null;
  const times = { policy, timeZone: given.timeZone ?? ownTimeZone(), nowMs: clock.nowMs() };
  for (let tries = 0; tries < maxTries; tries++) {
    const state = await store.load(ref);
    if (state === null) return null;
    const { sessionId = state.sessionId } = given;
    const isReplaced = state.sessionId !== sessionId;
    const old = isReplaced ? await store.load({ ...ref, archiveId: sessionId }) : state;
    const turn = old?.head.turn ?? null;
    // An open turn is still answering, so the session is in use whatever the time of its newest message.
    const isInUse = turn !== null && turn.leaseUntilMs > times.nowMs && given.isGone?.(turn) !== true;
    if (old === null || isInUse) return null;
    const { isDue, reason, lastActivityMs, dueAtMs } = await planSessionReset(store, old, times);
    if (!isDue || reason === null) return null;
    const facts = { reason, lastActivityMs, dueAtMs: dueAtMs ?? times.nowMs };
    if (isReplaced) return { fresh: state, facts };
    if ((await given.mayReset?.(state)) === false) return null;
    const fresh = await resetUnchanged(store, old, { clock, random, keep: keeping(given.keeps ?? []) });
    // Another writer changed the entry or reset the session in the meantime.
    if (fresh === null) continue;
    const note = throughlineDraft("note", { kind: "session-reset", ...facts, previousSessionId: sessionId });
    await appendOnce(store, ref, [note], { idempotencyKey: random.uuid(), isNewKey: true });
    return { fresh, facts };
  }
  throw new ThroughlineError(
    "REVISION_CONFLICT",
    `The entry of ${JSON.stringify(ref.key)} is changed without a pause.`,
    { outcome: "not-applied" },
  );
}

function keeping(fields: readonly string[]): typeof resetEntry {
  return (entry) => ({
    ...resetEntry(entry),
    ...Object.fromEntries(Object.entries(entry).filter(([name]) => fields.includes(name))),
  });
}

function isNever({ rule, byType, byChannel }: ResetPolicy): boolean {
  return rule.mode === "never" && byChannel.size === 0 && Object.keys(byType).length === 0;
}

function ownTimeZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}
