import {
  appendOnce,
  type Clock,
  type RandomSource,
  type SessionEntry,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import {
  keptOnReset,
  optionKinds,
  type OptionTable,
  resetUnchanged,
  throughlineDraft,
} from "@throughline/core/internal";
import { planReset, resolveSendPolicy, type ResetPlan, type ResetPolicy, type SendPolicy } from "@throughline/policy";

/** Options of every adapter that asks a model: what is checked before it does. */
export interface RunPolicyOptions {
  /**
   * The policy for where the agent may answer, from `readSendPolicy` of the package `policy`. A session's own `sendPolicy`
   * decides before it. @default null: everywhere the entry does not say `deny`
   */
  readonly sendPolicy?: SendPolicy | null;
  /**
   * When a session resets by itself, as `readResetPolicy` of the package `policy` gives it. It is checked before a new message;
   * the earlier session is archived. @default null: never
   */
  readonly reset?: ResetPolicy | null;
  /** An IANA zone, for daily resets. @default the system's */
  readonly timeZone?: string;
}

const { object, orNull, text } = optionKinds;

/** The kind of value that each of these options takes. */
export const runPolicyTable: OptionTable<RunPolicyOptions> = {
  sendPolicy: orNull(object),
  reset: orNull(object),
  timeZone: text,
};

/** The session that a run is about. */
export interface RunPlace {
  /** The store of the session. */
  readonly store: SessionStore;
  /** The address of the session in the store; the session may not exist yet. */
  readonly ref: SessionRef;
  /** The time against which the rules are checked. */
  readonly clock: Clock;
  /** Source of the id of a session that is reset. */
  readonly random: RandomSource;
  /** Whether the run begins with a new message; one that continues belongs to the session that it was begun in. */
  readonly isNew: boolean;
}

/**
 * Call before a run writes to its session. Refuses it where the agent may not answer, and resets the session when that is due.
 * @throws {ThroughlineError} SEND_DENIED, with nothing written; REVISION_CONFLICT; what the policies and the store throw
 */
export async function beforeRun(place: RunPlace, options: RunPolicyOptions): Promise<void> {
  const { store, ref, isNew } = place;
  const state = await store.load(ref);
  assertMaySend(ref, state?.entry ?? null, options.sendPolicy ?? null);
  const { reset = null, timeZone = new Intl.DateTimeFormat().resolvedOptions().timeZone } = options;
  if (reset !== null && state !== null && isNew) await resetIfDue(state, place, { reset, timeZone });
}

/**
 * Refuses an answer that the entry of a session or a policy denies. A session that does not exist has no entry: null.
 * @throws {ThroughlineError} SEND_DENIED; INPUT_INVALID for a policy of another shape; KEY_INVALID
 */
export function assertMaySend(ref: SessionRef, entry: SessionEntry | null, policy: SendPolicy | null): void {
  const { action, source, ruleIndex, mode } = resolveSendPolicy({ key: ref.key, entry, policy });
  if (action === "allow") return;
  const why = source === "session" ? "the session's own `sendPolicy`" : "the send policy";
  throw new ThroughlineError(
    "SEND_DENIED",
    `The agent may not answer in ${JSON.stringify(ref.key)}: ${why} denies it. Nothing was stored.`,
    { outcome: "not-applied", details: { ...ref, source, ruleIndex, mode } },
  );
}

/** More tries than that mean an entry that never rests. */
const maxTries = 64;

async function resetIfDue(
  first: SessionState,
  { store, ref, clock, random }: RunPlace,
  { reset, timeZone }: Required<Pick<RunPolicyOptions, "timeZone">> & { readonly reset: ResetPolicy },
): Promise<void> {
  let state: SessionState | null = first;
  for (let tries = 0; tries < maxTries && state !== null; tries++) {
    const nowMs = clock.nowMs();
    const { turn } = state.head;
    // Another run answers in it, whatever the time of the newest message.
    if (turn !== null && turn.leaseUntilMs > nowMs) return;
    const lastActivityMs = await newestMessageMs(store, state);
    if (lastActivityMs === null) return;
    const { channel } = state.entry;
    const question = { policy: reset, key: ref.key, lastActivityMs, nowMs, timeZone };
    const plan: ResetPlan = planReset(typeof channel === "string" ? { ...question, channel } : question);
    if (!plan.isDue) return;
    const fresh = await resetUnchanged(store, state, { clock, random, keep: keptOnReset });
    if (fresh !== null) {
      const facts = { reason: plan.reason, lastActivityMs, dueAtMs: plan.dueAtMs ?? nowMs };
      const note = { kind: "session-reset", ...facts, previousSessionId: state.sessionId };
      await appendOnce(store, ref, [throughlineDraft("note", note)], {
        idempotencyKey: random.uuid(),
        isNewKey: true,
      });
      return;
    }
    // Another writer changed the entry or reset the session by now.
    state = await store.load(ref);
  }
  if (state !== null)
    throw new ThroughlineError(
      "REVISION_CONFLICT",
      `The entry of ${JSON.stringify(ref.key)} is changed without a pause.`,
    );
}

/** When somebody last said something, or the session began where that is later; null for a session without a message. */
async function newestMessageMs(store: SessionStore, state: SessionState): Promise<number | null> {
  if (state.messageCount === 0) return null;
  for await (const { records } of store.read(state.ref, { order: "descending", limit: 1000 }))
    for (const { type, side, tsMs } of records)
      if (type === "message" && !side && tsMs !== null) return Math.max(tsMs, state.createdAtMs);
  return Math.max(state.updatedAtMs, state.createdAtMs);
}
