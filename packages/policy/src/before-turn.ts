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

/** What denies an answer in a session; null where the agent may answer. A session that does not exist has no entry. */
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
    // No rule can be held against a key that another program wrote in a form of its own.
    return resolveSendPolicy({ key: "main", entry, policy: policy === null ? null : { ...policy, rules: [] } });
  }
}

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

/** What a reset before a turn goes by. */
export interface ResetBeforeTurn {
  /** Null: no session resets by itself. */
  readonly reset: ResetPolicy | null;
  /** An IANA zone for daily hours. @default the system's */
  readonly timeZone?: string | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Fields of the entry that the new session keeps beside those that every reset keeps. @default none */
  readonly keeps?: readonly string[];
  /** The session that the caller has open under the key. @default the one that the key has */
  readonly sessionId?: string;
  /** Whether nobody can write for an open turn any more, lease or not. @default nobody knows */
  readonly isGone?: (turn: OpenTurn) => boolean;
  /** Asked where a reset is due: false leaves the session as it is, and what it throws ends the call. @default true */
  readonly mayReset?: (state: SessionState) => boolean | Promise<boolean>;
}

/** A reset before a turn: the session that the key has now, and why. */
export interface DoneReset {
  readonly fresh: SessionState;
  readonly facts: { readonly reason: "daily" | "idle"; readonly lastActivityMs: number; readonly dueAtMs: number };
}

/** Everybody who decides at once sees what the first one did; more tries than that mean an entry that never rests. */
const maxTries = 64;

/**
 * Begins a new session under the key when the policy says that it is time. The earlier one is archived, and a note in the new
 * one names it. Null when nothing was due. A session that another caller reset already is not reset again.
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
    // Somebody answers in it, whatever the time of the newest message.
    const isInUse = turn !== null && turn.leaseUntilMs > times.nowMs && given.isGone?.(turn) !== true;
    if (old === null || isInUse) return null;
    const { isDue, reason, lastActivityMs, dueAtMs } = await planSessionReset(store, old, times);
    if (!isDue || reason === null) return null;
    const facts = { reason, lastActivityMs, dueAtMs: dueAtMs ?? times.nowMs };
    if (isReplaced) return { fresh: state, facts };
    if ((await given.mayReset?.(state)) === false) return null;
    const fresh = await resetUnchanged(store, old, { clock, random, keep: keeping(given.keeps ?? []) });
    // Another writer changed the entry or reset the session by now.
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
