import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";

/** Describes one session by the facts that a retention plan needs. */
export interface RetainedSession {
  /** States the session's key, which orders sessions of the same age. */
  readonly key: string;
  /** States the id by which a step of the plan names the session. */
  readonly sessionId: string;
  /** States whether the session is in use or archived, because only an archive can be purged. */
  readonly state: "active" | "archived";
  /** States when the session was last active, in UTC milliseconds. */
  readonly updatedAtMs: number;
  /**
   * States when the session was archived, in UTC milliseconds. Null means unknown, and counts as now. Only archived
   * sessions have it.
   */
  readonly archivedAtMs?: number | null;
  /** States the size in bytes. Null means unknown, and counts as 0 for a limit on bytes. */
  readonly sizeBytes: number | null;
  /** States whether the session must stay: it has an open turn, is pinned, or is on display. @default false */
  readonly isProtected?: boolean;
}

/** Limits the age, the number and the size of the sessions that are kept. */
export interface RetentionPolicy {
  /**
   * Archives sessions without activity for longer than this many milliseconds. Null disables the limit.
   * @default null
   */
  readonly olderThanMs?: number | null | undefined;
  /** Limits the number of active sessions; the newest are kept. Null disables the limit. @default null */
  readonly keep?: number | null | undefined;
  /** Limits the size of all sessions together, in bytes. Null disables the limit. @default null */
  readonly maxBytes?: number | null | undefined;
  /** Sets how many milliseconds an archive stays before it may be purged. @default 30 days */
  readonly graceMs?: number | undefined;
  /** Allows the plan to purge archives; false keeps archives of any age. @default true */
  readonly purgesArchives?: boolean | undefined;
}

const { flag, integer, number, orNull } = optionKinds;

export const retentionTable: OptionTable<RetentionPolicy> = {
  olderThanMs: orNull(number({ min: 0 })),
  keep: orNull(integer({ min: 0 })),
  maxBytes: orNull(number({ min: 0 })),
  graceMs: number({ min: 0 }),
  purgesArchives: flag,
};

/** Describes one session that a plan archives or purges. */
export interface RetentionStep {
  /** States the action: `archive` keeps the records under an archive; `purge` deletes them permanently. */
  readonly action: "archive" | "purge";
  /** States the session's key when the plan was created. */
  readonly key: string;
  /** States the id of the session under the key. */
  readonly sessionId: string;
  /** Names the limit that selected the session: its age, the count, or the bytes of all sessions. */
  readonly reason: "age" | "count" | "bytes";
  /** States when the session was last active, in UTC milliseconds. */
  readonly updatedAtMs: number;
  /** States the session's size in bytes, or null when the size is unknown. */
  readonly sizeBytes: number | null;
}

/** Lists the sessions that a retention policy archives and deletes. */
export interface RetentionPlan {
  /** Holds the steps, with the oldest session first. */
  readonly steps: readonly RetentionStep[];
  /** Counts the sessions that the plan was computed from. */
  readonly sessionCount: number;
  /** States the size of all sessions in bytes; sessions of unknown size count as 0. */
  readonly sizeBytes: number;
  /** States the bytes that the purge steps free. Archiving frees no bytes until the archive is purged. */
  readonly freedBytes: number;
  /** Lists sessions over a limit that stay, because they are protected or within their grace period. */
  readonly spared: readonly { readonly key: string; readonly sessionId: string; readonly why: "protected" | "grace" }[];
  /** States by how many bytes a byte limit is still exceeded after all steps. */
  readonly excessBytes: number;
}

const thirtyDaysMs = 30 * 86_400_000;

/**
 * Plans which sessions to archive or purge, by age, count and bytes. The plan itself removes nothing. An active session
 * is archived first and never purged at once; an archive is purged when its grace period is over. Protected sessions
 * stay, and whether an index lists a session has no influence.
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
    // Archived bytes become free only after the grace period, so they count here. Otherwise the plan would archive more
    // than needed.
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
