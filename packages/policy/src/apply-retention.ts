import { endSession, hasErrorCode } from "@throughline/core";
import {
  abortedBefore,
  archivedAtMs,
  assertKnownOptions,
  mainSessionKey,
  optionKinds,
  type OptionTable,
  portKinds,
  withSystemPorts,
} from "@throughline/core/internal";
import type { Clock, SessionRef, SessionState, SessionStore } from "@throughline/core";
import type { RetainedSession, RetentionPlan, RetentionStep } from "./plan-retention.ts";

/** Describes a session of a store by the facts that a retention plan needs. */
export interface StoredSession extends RetainedSession {
  /** States the address of the session in the store, with `archiveId` for an archived session. */
  readonly ref: SessionRef;
}

/** Sets what `readRetained` reads, and the time that it compares leases with. */
export interface ReadRetainedOptions {
  /** Reads the size of each session, which requires reading all its record heads. */
  readonly isMeasured: boolean;
  /** Sets the time that leases of open turns are compared with, in UTC milliseconds. */
  readonly nowMs: number;
  /** Receives the key of a session before the session is measured. */
  readonly onMeasure?: (key: string) => void;
  /** Aborts the measuring of sizes with ABORTED. */
  readonly signal: AbortSignal;
}

const { callback, flag, number, required, signal: signalKind } = optionKinds;

export const readRetainedTable: OptionTable<ReadRetainedOptions> = {
  isMeasured: required(flag),
  nowMs: required(number()),
  onMeasure: callback,
  signal: required(signalKind),
};

/**
 * Reads the facts that a retention plan needs about sessions. The main session of each agent, its newest session, and
 * sessions with an open turn are protected.
 * @param sessions with the newest first, as stores list them
 * @throws {ThroughlineError} INPUT_INVALID, and what the store throws
 */
export async function readRetained(
  store: SessionStore,
  sessions: AsyncIterable<SessionState>,
  options: ReadRetainedOptions,
): Promise<readonly StoredSession[]> {
  assertKnownOptions<ReadRetainedOptions>("readRetained", options, readRetainedTable);
  const { isMeasured, nowMs, onMeasure, signal } = options;
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

/** Reports a step of a plan and its outcome. */
export interface AppliedStep {
  /** Holds the step of the plan. */
  readonly step: RetentionStep;
  /** States the address of the session when the plan was created. */
  readonly ref: SessionRef;
  /**
   * States the outcome. `done`: the session was archived or purged. `skipped`: it was used, moved or removed since the
   * plan was created.
   */
  readonly state: "done" | "skipped";
}

/** Sets the clock, the progress callback and the signal of `applyRetention`. */
export interface ApplyRetentionOptions {
  /** Decides whether a turn is still open. @default the system's clock */
  readonly clock?: Clock | undefined;
  /** Receives each step before the step runs. */
  readonly onStep?: ((step: RetentionStep) => void) | undefined;
  /** Aborts the work between two steps. */
  readonly signal: AbortSignal;
}

export const applyRetentionTable: OptionTable<ApplyRetentionOptions> = {
  clock: portKinds.clock,
  onStep: callback,
  signal: required(signalKind),
};

/**
 * Carries out a plan, one step after the other. A session that was used since the plan was created does not change.
 * @param sessions those that the plan was made of
 * @throws {ThroughlineError} INPUT_INVALID, ABORTED, and what the store throws
 */
export async function* applyRetention(
  store: SessionStore,
  sessions: readonly StoredSession[],
  plan: RetentionPlan,
  options: ApplyRetentionOptions,
): AsyncGenerator<AppliedStep, void, void> {
  assertKnownOptions<ApplyRetentionOptions>("applyRetention", options, applyRetentionTable);
  const { clock, onStep, signal } = withSystemPorts(options);
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
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<AppliedStep["state"]> {
  if (signal.aborted) throw abortedBefore("all steps were taken", signal);
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
