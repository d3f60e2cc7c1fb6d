import type { SessionState, SessionStore } from "@throughline/core";
import {
  createWorkSlices,
  isFields,
  KeyedQueues,
  monotonicMs,
  type RecordHead,
  runInSlices,
  throughlineKind,
} from "@throughline/core/internal";
import { promptText } from "@throughline/history/internal";
import { FileChanges, SessionDigest } from "@throughline/transcript-view/internal";
import { SessionUsageSum } from "@throughline/usage/internal";

/** Holds what one pass over the records of a session finds. It has no content but first lines and paths. */
export interface DigestedSession {
  readonly digest: SessionDigest;
  readonly usage: SessionUsageSum;
  readonly files: FileChanges;
}

interface KeptSession extends DigestedSession {
  /** Sums up the stored bytes of the records that were read. */
  checksum: number;
  /** States when the checksum was last known to hold, and what the check took, by a clock that never goes back. */
  checkedMs: number;
  checkMs: number;
  readonly sessionId: string;
  readonly createdAtMs: number;
  readonly folder: string | null;
  /** Counts the messages that were read. */
  messages: number;
  /** Counts the messages that the store states beside those. A redaction of a message changes it. */
  messagesApart: number;
}

const mostSessions = 50;
/** A record takes about 400 bytes of a kept session. */
const mostRecords = 500_000;
/** Checks take at most a twentieth of the time. */
const checkShare = 20;
const longestUncheckedMs = 30_000;
/** A read of the records takes about four times as long as one of their checksums. */
const readShare = 4;

/**
 * Reads each session once and goes on from its newest record, because logs only grow. A session is read again from its
 * first record after a redaction, a reset and an erasure.
 *
 * A redaction of texts by another program changes records and leaves nothing else. The checksums of the records show it.
 * They are compared again before an answer, once 20 times what a comparison takes has passed, and 30 s at the latest.
 * Archived sessions are not kept.
 */
export class SessionDigests {
  readonly #kept = new Map<string, KeptSession>();
  readonly #queues = new KeyedQueues();
  #erasures = 0;

  /** @param store limited to what the caller may see */
  async of(store: SessionStore, state: SessionState, signal: AbortSignal): Promise<DigestedSession> {
    const { namespace, agentId, key } = state.ref;
    const name = JSON.stringify([namespace, agentId, key]);
    return this.#queues.run(name, async () => {
      const kept = this.#kept.get(name);
      const erasures = this.#erasures;
      this.#kept.delete(name);
      const session =
        (kept !== undefined && isSame(kept, state) && (await isUnchanged(store, state, kept, signal))
          ? await goOn(store, state, kept, signal)
          : null) ?? (await readAll(store, state, signal));
      // Records that were read before an erasure must not be kept.
      if (!state.archived && erasures === this.#erasures) this.#keep(name, session);
      return session;
    });
  }

  /** Forgets every session. An erasure in one may reach others that share its records. */
  clear(): void {
    this.#erasures += 1;
    this.#kept.clear();
  }

  #keep(name: string, session: KeptSession): void {
    this.#kept.set(name, session);
    let records = 0;
    for (const [each, { digest }] of [...this.#kept].toReversed()) {
      records += digest.lastSeq;
      if (each !== name && (records > mostRecords || this.#kept.size > mostSessions)) this.#kept.delete(each);
    }
  }
}

function isSame({ sessionId, createdAtMs, folder, digest }: KeptSession, state: SessionState): boolean {
  const isSession = sessionId === state.sessionId && createdAtMs === state.createdAtMs && !state.archived;
  return isSession && folder === folderOf(state) && digest.lastSeq <= state.head.lastSeq;
}

function folderOf({ entry: { cwd } }: SessionState): string | null {
  return typeof cwd === "string" && cwd !== "" ? cwd : null;
}

/** Returns whether the records that were read are still the same bytes, as far as it is time to look. */
async function isUnchanged(
  store: SessionStore,
  { ref }: SessionState,
  kept: KeptSession,
  signal: AbortSignal,
): Promise<boolean> {
  const startedMs = monotonicMs();
  if (startedMs - kept.checkedMs < Math.min(kept.checkMs * checkShare, longestUncheckedMs)) return true;
  const slices = createWorkSlices();
  let checksum = 0;
  const range = { beforeSeq: kept.digest.lastSeq + 1, payload: "head", signal } as const;
  for await (const { records } of kept.digest.lastSeq === 0 ? [] : store.read(ref, range))
    for (const record of records) {
      checksum = checksumWith(checksum, record);
      const pause = slices.next();
      if (pause !== undefined) await pause;
    }
  kept.checkedMs = monotonicMs();
  kept.checkMs = kept.checkedMs - startedMs;
  return checksum === kept.checksum;
}

function checksumWith(checksum: number, { bytes, crc }: RecordHead): number {
  return (Math.imul(checksum, 31) + (crc ?? 0) + bytes) | 0;
}

async function readAll(store: SessionStore, state: SessionState, signal: AbortSignal): Promise<KeptSession> {
  const { sessionId, createdAtMs } = state;
  const folder = folderOf(state);
  const startedMs = monotonicMs();
  const session: KeptSession = {
    sessionId,
    createdAtMs,
    folder,
    digest: new SessionDigest({ promptText }),
    usage: new SessionUsageSum(),
    files: new FileChanges(folder),
    messages: 0,
    messagesApart: 0,
    checksum: 0,
    checkedMs: startedMs,
    checkMs: 0,
  };
  await read(store, state, session, signal);
  session.checkMs = (monotonicMs() - startedMs) / readShare;
  session.messagesApart = state.messageCount - session.messages;
  return session;
}

/** Returns null for a session that must be read again. */
async function goOn(
  store: SessionStore,
  state: SessionState,
  kept: KeptSession,
  signal: AbortSignal,
): Promise<KeptSession | null> {
  const isErased = await read(store, state, kept, signal);
  return isErased || state.messageCount - kept.messages !== kept.messagesApart ? null : kept;
}

/** Returns whether a new record notes an erasure. */
async function read(
  store: SessionStore,
  { ref, head }: SessionState,
  session: KeptSession,
  signal: AbortSignal,
): Promise<boolean> {
  const { digest, usage, files } = session;
  const slices = createWorkSlices();
  let isErased = false;
  const range = { afterSeq: digest.lastSeq, beforeSeq: head.lastSeq + 1, signal };
  if (range.afterSeq + 1 >= range.beforeSeq) return isErased;
  for await (const page of store.read(ref, range))
    for (const record of page.records) {
      if (record.type === "message") session.messages += 1;
      isErased ||= notesErasure(record.record);
      session.checksum = checksumWith(session.checksum, record);
      usage.take(record, digest.take(record));
      const counting = files.take(record);
      if (counting !== null) await runInSlices(counting);
      const pause = slices.next();
      if (pause !== undefined) await pause;
    }
  return isErased;
}

/** The last record of a redaction names what was redacted. */
function notesErasure(record: { readonly [field: string]: unknown; readonly type: string }): boolean {
  const data = throughlineKind(record) === "note" ? record["data"] : null;
  return isFields(data) && data["kind"] === "summary-outdated";
}
