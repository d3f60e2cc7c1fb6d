import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";

/** What a retention plan needs to know of a session. */
export interface RetainedSession {
  /** The session's key, which orders sessions of the same age. */
  readonly key: string;
  /** The id by which a step of the plan names the session. */
  readonly sessionId: string;
  /** Whether the session is in use or archived: only an archive can be purged. */
  readonly state: "active" | "archived";
  /** When the session was last active, UTC milliseconds. */
  readonly updatedAtMs: number;
  /** When it was archived; null when nobody knows, which counts as now. Only for archived ones. */
  readonly archivedAtMs?: number | null;
  /** Null when unknown; then it counts as nothing for a cap on bytes. */
  readonly sizeBytes: number | null;
  /** An open turn, a pinned session, the session somebody is looking at: whatever must stay. @default false */
  readonly isProtected?: boolean;
}

/** How long, how many and how much of sessions is kept. */
export interface RetentionPolicy {
  /** Sessions without activity for longer are archived. Null: age alone removes nothing. @default null */
  readonly olderThanMs?: number | null;
  /** The most active sessions that stay; the newest are kept. @default null */
  readonly keep?: number | null;
  /** All sessions together are to be at most so large. @default null */
  readonly maxBytes?: number | null;
  /** How long an archive stays before it may be purged. @default 30 days */
  readonly graceMs?: number;
  /** False: archives are never purged, whatever their age. @default true */
  readonly purgesArchives?: boolean;
}

const { flag, integer, number, orNull } = optionKinds;

/** The kinds of a policy of `planRetention`. */
export const retentionTable: OptionTable<RetentionPolicy> = {
  olderThanMs: orNull(number({ min: 0 })),
  keep: orNull(integer({ min: 0 })),
  maxBytes: orNull(number({ min: 0 })),
  graceMs: number({ min: 0 }),
  purgesArchives: flag,
};

/** One session that a plan archives or purges. */
export interface RetentionStep {
  /** `archive` keeps the records under an archive; `purge` deletes them permanently. */
  readonly action: "archive" | "purge";
  /** The session's key when the plan was made. */
  readonly key: string;
  /** The session's id. */
  readonly sessionId: string;
  /** Which limit of the policy named the session: its age, the count, or the bytes of all. */
  readonly reason: "age" | "count" | "bytes";
  /** When the session was last active, UTC milliseconds. */
  readonly updatedAtMs: number;
  /** The session's size in bytes; null when unknown. */
  readonly sizeBytes: number | null;
}

/** What a retention policy archives and deletes. */
export interface RetentionPlan {
  /** Oldest first. */
  readonly steps: readonly RetentionStep[];
  /** How many sessions the plan was made of. */
  readonly sessionCount: number;
  /** The size of all of them in bytes; sessions of unknown size count as 0. */
  readonly sizeBytes: number;
  /** Of the steps that purge: archiving frees nothing yet. */
  readonly freedBytes: number;
  /** Sessions that a limit names and that stay because they are protected or within their grace. */
  readonly spared: readonly { readonly key: string; readonly sessionId: string; readonly why: "protected" | "grace" }[];
  /** By how much a cap on bytes is still exceeded when everything is done. */
  readonly excessBytes: number;
}

const thirtyDaysMs = 30 * 86_400_000;

/**
 * What should go, by age, count and bytes. A plan only: nothing is removed by it. An active session is archived and
 * never purged at once; an archive is purged when its grace is over. Nothing protected is touched, and a session is
 * never judged by whether an index knows it.
 *
 * @throws {ThroughlineError} INPUT_INVALID for a policy with another field or type, or out of range
 */
export function planRetention(
  sessions: readonly RetainedSession[],
  policy: RetentionPolicy,
  nowMs: number,
): RetentionPlan {
  assertKnownOptions<RetentionPolicy>("planRetention", policy, retentionTable, "policy");
  const { olderThanMs = null, keep = null, maxBytes = null } = policy;
  const plan = new Plan(policy, nowMs);
  const oldestFirst = sessions.toSorted(
    (one, other) => one.updatedAtMs - other.updatedAtMs || (one.key < other.key ? -1 : one.key > other.key ? 1 : 0),
  );
  const active = oldestFirst.filter(({ state }) => state === "active");
  const archived = oldestFirst.filter(({ state }) => state === "archived");
  if (olderThanMs !== null) {
    for (const session of active) if (nowMs - session.updatedAtMs > olderThanMs) plan.archive(session, "age");
    for (const session of archived) if (nowMs - session.updatedAtMs > olderThanMs) plan.purge(session, "age");
  }
  if (keep !== null)
    for (const session of active.slice(0, Math.max(0, active.length - keep))) plan.archive(session, "count");
  const totalBytes = sessions.reduce((sum, { sizeBytes }) => sum + (sizeBytes ?? 0), 0);
  if (maxBytes !== null) {
    for (const session of archived) if (totalBytes - plan.freedBytes > maxBytes) plan.purge(session, "bytes");
    // What is archived now frees its bytes when its grace is over; no more is archived than that will bring.
    for (const session of active) {
      if (totalBytes - plan.freedBytes - plan.archivedBytes > maxBytes) plan.archive(session, "bytes");
    }
  }
  const excessBytes = maxBytes === null ? 0 : Math.max(0, totalBytes - plan.freedBytes - maxBytes);
  return {
    steps: plan.steps.toSorted((one, other) => one.updatedAtMs - other.updatedAtMs),
    sessionCount: sessions.length,
    sizeBytes: totalBytes,
    freedBytes: plan.freedBytes,
    spared: [...plan.spared.values()],
    excessBytes,
  };
}

class Plan {
  readonly steps: RetentionStep[] = [];
  readonly spared: Map<string, RetentionPlan["spared"][number]> = new Map();
  freedBytes = 0;
  archivedBytes = 0;
  readonly #planned = new Set<string>();
  readonly #graceMs: number;
  readonly #purgesArchives: boolean;
  readonly #nowMs: number;

  constructor({ graceMs = thirtyDaysMs, purgesArchives = true }: RetentionPolicy, nowMs: number) {
    this.#graceMs = graceMs;
    this.#purgesArchives = purgesArchives;
    this.#nowMs = nowMs;
  }

  archive(session: RetainedSession, reason: RetentionStep["reason"]): void {
    if (this.#plan("archive", session, reason)) this.archivedBytes += session.sizeBytes ?? 0;
  }

  purge(session: RetainedSession, reason: RetentionStep["reason"]): void {
    if (!this.#purgesArchives) return;
    const archivedAtMs = session.archivedAtMs ?? this.#nowMs;
    if (this.#nowMs - archivedAtMs < this.#graceMs) return this.#spare(session, "grace");
    if (this.#plan("purge", session, reason)) this.freedBytes += session.sizeBytes ?? 0;
  }

  #plan(action: RetentionStep["action"], session: RetainedSession, reason: RetentionStep["reason"]): boolean {
    const { key, sessionId, updatedAtMs, sizeBytes } = session;
    if (session.isProtected === true) this.#spare(session, "protected");
    if (session.isProtected === true || this.#planned.has(sessionId)) return false;
    this.#planned.add(sessionId);
    this.steps.push({ action, key, sessionId, reason, updatedAtMs, sizeBytes });
    return true;
  }

  #spare({ key, sessionId }: RetainedSession, why: "protected" | "grace"): void {
    this.spared.set(sessionId, { key, sessionId, why });
  }
}
