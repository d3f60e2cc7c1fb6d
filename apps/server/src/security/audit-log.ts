import { customRecord, hasErrorCode, openSession, type SessionRef, type SessionStore } from "@throughline/core";
import { listSessions, systemRandom } from "@throughline/core/internal";

/** Something that must be known afterwards: who asked for it, and when. */
export interface AuditEvent {
  readonly action: "token.create" | "token.revoke" | "redact" | "purge" | "drain" | "refused" | "audit.remove";
  /** The id of the token that asked; `cli` for the command line on the store itself. */
  readonly by: string;
  /** Whose sessions it is about; null: the server as a whole. */
  readonly namespace: string | null;
  readonly agentId: string | null;
  readonly requestId: string | null;
  /** What it is about: the id of a token, the key of a session, ids of records. Never their content. */
  readonly details: Readonly<Record<string, unknown>>;
}

/** An event as it is kept. */
export interface AuditEntry extends AuditEvent {
  /** Grows from event to event, also from one month to the next. */
  readonly seq: number;
  readonly atMs: number;
}

/** What was asked for, in one session of the store a month. Every node of a service writes to the same. */
export interface AuditLog {
  /** Keeps an event before what it says is done, so that nothing is done unseen. Removes months that are too old. */
  write(event: AuditEvent): Promise<void>;
  /** Events behind a seq, the oldest first. */
  read(afterSeq: number): AsyncGenerator<AuditEntry, void, void>;
}

const place = { namespace: "throughline.audit", agentId: "main" } as const;
const recordType = "throughline-server.audit";
/** The key of the events of a month; of the first versions all events have the key alone. */
const keyForm = /^audit(?:-(\d{4})-(\d{2}))?$/;
/** More events than a month has. */
const perMonth = 1_000_000_000;
const dayMs = 86_400_000;

/**
 * @param nowMs the time that events state
 * @param keptDays how long a month is kept after its end; 0: for ever
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
        // Another node was faster.
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
  /** Added to the seqs of its records. */
  readonly base: number;
  readonly endMs: number;
}

/** The oldest first. */
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

/** Months since 1970. */
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
    // Removed since it was listed.
    if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
  }
}
