import { customRecord, hasErrorCode, openSession, type SessionRef, type SessionStore } from "@throughline/core";
import { listSessions, systemRandom } from "@throughline/core/internal";

/** Describes an action that must be traceable later: who requested it, and when. */
export interface AuditEvent {
  readonly action: "token.create" | "token.revoke" | "redact" | "purge" | "drain" | "refused" | "audit.remove";
  /** Names the requesting token. It is `cli` for the command line, which opens the store without a token. */
  readonly by: string;
  /** Names the namespace that the action affects. Null means the whole server. */
  readonly namespace: string | null;
  readonly agentId: string | null;
  readonly requestId: string | null;
  /**
   * Identifies the target: the id of a token, the key of a session, or ids of records. It never holds their content.
   */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface AuditEntry extends AuditEvent {
  /** Increases with each event, also across months, so that a reader can resume. */
  readonly seq: number;
  readonly atMs: number;
}

/** Stores audit events in one session per month. All nodes of a service write to the same session. */
export interface AuditLog {
  /**
   * Stores an event before its action runs, so that no action is untraced. It also removes months past the retention
   * time.
   */
  write(event: AuditEvent): Promise<void>;
  read(afterSeq: number): AsyncGenerator<AuditEntry, void, void>;
}

/** Keeps nothing: for an API whose only token may not do what must be traced. */
export const noAudit: AuditLog = {
  write: () => Promise.resolve(),
  async *read() {},
};

const place = { namespace: "throughline.audit", agentId: "main" } as const;
const recordType = "throughline-server.audit";
/** Matches the key of a month. The first versions kept all events under the key without a month. */
const keyForm = /^audit(?:-(\d{4})-(\d{2}))?$/;
/** Separates the seqs of two months, because no month has this many events. */
const perMonth = 1_000_000_000;
const dayMs = 86_400_000;

/**
 * @param nowMs the clock for the time of events
 * @param keptDays how long a month is kept after its end; 0 keeps every month
 */
export function createAuditLog(store: SessionStore, nowMs: () => number, keptDays: number): AuditLog {
  let openKey: string | null = null;
  const append = async (event: AuditEvent): Promise<void> => {
    const atMs = nowMs();
    const ref = { ...place, key: keyOf(atMs) };
    if (openKey !== ref.key) await openSession(store, ref, { random: systemRandom });
    openKey = ref.key;
    await store.append(ref, [customRecord(recordType, { ...event, atMs })]);
  };
  const removeOld = async (): Promise<void> => {
    if (keptDays === 0) return;
    for (const { ref, endMs } of await months(store)) {
      if (endMs > nowMs() - keptDays * dayMs) continue;
      await append({ ...nobody, details: { key: ref.key } });
      await store.remove(ref).catch((error: unknown) => {
        // Another node removed the month first, so this node has nothing to do.
        if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
      });
    }
  };
  let removedKey: string | null = null;
  return {
    async write(event) {
      await append(event);
      if (removedKey === openKey) return;
      removedKey = openKey;
      await removeOld();
    },
    async *read(afterSeq) {
      for (const { ref, base } of await months(store))
        if (afterSeq < base + perMonth) yield* eventsOf(store, ref, base, afterSeq);
    },
  };
}

const nobody = { action: "audit.remove", by: "server", namespace: null, agentId: null, requestId: null } as const;

function keyOf(atMs: number): string {
  return `audit-${new Date(atMs).toISOString().slice(0, 7)}`;
}

interface Month {
  readonly ref: SessionRef;
  /** Is added to the seqs of the month's records, because each month's session counts from 1. */
  readonly base: number;
  readonly endMs: number;
}

/** Sorts by time, because `read` returns the oldest event first. */
async function months(store: SessionStore): Promise<readonly Month[]> {
  const found: Month[] = [];
  for await (const { ref, updatedAtMs } of listSessions(store, { ...place, sort: "key", limit: 1000 })) {
    const [whole, year, month] = keyForm.exec(ref.key) ?? [];
    if (whole === undefined) continue;
    if (year === undefined) found.push({ ref, base: 0, endMs: updatedAtMs });
    else found.push({ ref, base: monthOf(year, month) * perMonth, endMs: Date.UTC(Number(year), Number(month), 1) });
  }
  return found.toSorted((one, other) => one.base - other.base);
}

function monthOf(year: string, month: string | undefined): number {
  return (Number(year) - 1970) * 12 + Number(month);
}

async function* eventsOf(
  store: SessionStore,
  ref: SessionRef,
  base: number,
  afterSeq: number,
): AsyncGenerator<AuditEntry, void, void> {
  try {
    for await (const { records } of store.read(ref, { afterSeq: Math.max(0, afterSeq - base) }))
      for (const { seq, record } of records)
        if (record["customType"] === recordType)
          yield { ...(record["data"] as Omit<AuditEntry, "seq">), seq: base + seq };
  } catch (error) {
    // The month was removed after it was listed, so it has no events.
    if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
  }
}
