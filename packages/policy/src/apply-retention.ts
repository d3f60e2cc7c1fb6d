import { endSession, hasErrorCode, mainSessionKey } from "@throughline/core";
import type { Clock, SessionRef, SessionState, SessionStore } from "@throughline/core";
import { archivedAtMs } from "@throughline/core/internal";
import type { RetainedSession, RetentionPlan, RetentionStep } from "./plan-retention.ts";

/** A session of a store with what a plan of retention needs to know. */
export interface StoredSession extends RetainedSession {
  readonly ref: SessionRef;
}

export interface ReadRetainedOptions {
  /** Reads the size of each session, which takes a walk through all its records. */
  readonly isMeasured: boolean;
  readonly nowMs: number;
  /** Called before a session is measured. */
  readonly onMeasure?: (key: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Reads what a plan of retention needs to know of sessions. Protected are the main session of each agent, its newest one, and
 * those with an open turn.
 * @param sessions with the newest first, as stores list them
 */
export async function readRetained(
  store: SessionStore,
  sessions: AsyncIterable<SessionState>,
  { isMeasured, nowMs, onMeasure, signal }: ReadRetainedOptions,
): Promise<readonly StoredSession[]> {
  const agents = new Set<string>();
  const retained: StoredSession[] = [];
  for await (const state of sessions) {
    const { ref, sessionId, archived, updatedAtMs, entry } = state;
    // A conversation without a key continues in the newest session.
    const isNewest = !archived && !agents.has(ref.agentId);
    if (isNewest) agents.add(ref.agentId);
    if (isMeasured) onMeasure?.(ref.key);
    retained.push({
      ref,
      key: ref.key,
      sessionId,
      state: archived ? "archived" : "active",
      updatedAtMs,
      archivedAtMs: archived ? archivedAtMs(entry) : null,
      sizeBytes: isMeasured ? await sizeOf(store, ref, signal) : null,
      isProtected: isNewest || isInUse(state, nowMs),
    });
  }
  return retained;
}

/** A step of a plan, and its outcome: `skipped` when the session was used since the plan was made. */
export interface AppliedStep {
  readonly step: RetentionStep;
  readonly ref: SessionRef;
  readonly state: "done" | "skipped";
}

export interface ApplyRetentionOptions {
  readonly clock: Clock;
  /** Called before each step. */
  readonly onStep?: (step: RetentionStep) => void;
  readonly signal: AbortSignal;
}

/**
 * Carries out a plan, one step after the other. A session that was used since the plan was made is left alone.
 * @param sessions those that the plan was made of
 * @throws {ThroughlineError} ABORTED, and what the store throws
 */
export async function* applyRetention(
  store: SessionStore,
  sessions: readonly StoredSession[],
  plan: RetentionPlan,
  { clock, onStep, signal }: ApplyRetentionOptions,
): AsyncGenerator<AppliedStep, void, void> {
  const byId = new Map(sessions.map((session) => [session.sessionId, session]));
  for (const step of plan.steps) {
    const session = byId.get(step.sessionId);
    if (session === undefined) continue;
    onStep?.(step);
    yield { step, ref: session.ref, state: await apply(store, session, step, { clock, signal }) };
  }
}

async function apply(
  store: SessionStore,
  session: StoredSession,
  step: RetentionStep,
  { clock, signal }: ApplyRetentionOptions,
): Promise<AppliedStep["state"]> {
  signal.throwIfAborted();
  try {
    const now = await store.load(session.ref, { signal });
    const isSame = now?.sessionId === session.sessionId && now.updatedAtMs === session.updatedAtMs;
    if (now === null || !isSame || isInUse(now, clock.nowMs())) return "skipped";
    const purge = step.action !== "archive";
    await endSession(store, session.ref, { clock, timeoutMs: 0, purge, signal });
    return "done";
  } catch (error) {
    if (hasErrorCode(error, "SESSION_NOT_FOUND", "SESSION_ARCHIVED", "SESSION_BUSY", "REVISION_CONFLICT"))
      return "skipped";
    throw error;
  }
}

function isInUse({ ref, archived, head }: SessionState, nowMs: number): boolean {
  if (archived) return false;
  return ref.key === mainSessionKey(ref.agentId) || (head.turn !== null && head.turn.leaseUntilMs > nowMs);
}

async function sizeOf(store: SessionStore, ref: SessionRef, signal: AbortSignal): Promise<number> {
  let sizeBytes = 0;
  for await (const { records } of store.read(ref, { payload: "head", signal }))
    for (const { bytes } of records) sizeBytes += bytes;
  return sizeBytes;
}
