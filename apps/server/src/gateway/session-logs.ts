import {
  hasErrorCode,
  redactRecords,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type StoredRecord,
} from "@throughline/core";
import { throughlineKind } from "@throughline/core/internal";
import { WireLog } from "@throughline/wire/internal";

/** What is known of a session while calls of it are recorded. */
export interface KnownSession {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly log: WireLog;
  /** The head of the session, as far as it is known. */
  headId: string | null;
}

/** All that is known of sessions together may take this. */
const mostBytes = 64 * 1024 * 1024;
/** A session without a message takes about as much. */
const leastBytes = 4 * 1024;

/** The logs of sessions, kept in memory while they are used. */
export class SessionLogs {
  readonly #store: SessionStore;
  /** Those that were used last stand last. `size`: what a session took when it was last counted. */
  readonly #known = new Map<string, { readonly session: KnownSession; readonly size: number }>();
  #bytes = 0;

  constructor(store: SessionStore) {
    this.#store = store;
  }

  /** What is remembered of a session, which others may have changed or removed; null for nothing. */
  remembered(ref: SessionRef): KnownSession | null {
    return this.#known.get(nameOf(ref))?.session ?? null;
  }

  /** A session that was begun a moment ago, and has no record. */
  begun(ref: SessionRef, { sessionId }: Pick<SessionState, "sessionId">): KnownSession {
    this.forget(ref);
    const session = { ref, sessionId, log: new WireLog(), headId: null };
    this.#keep(nameOf(ref), session);
    return session;
  }

  /** The session as it is now; null without one. */
  async read(ref: SessionRef): Promise<KnownSession | null> {
    const state = await this.#store.load(ref);
    if (state === null) {
      this.forget(ref);
      return null;
    }
    const name = nameOf(ref);
    let session = this.#known.get(name)?.session;
    if (session === undefined || session.sessionId !== state.entry.sessionId) {
      this.forget(ref);
      session = { ref, sessionId: state.entry.sessionId, log: new WireLog(), headId: null };
    }
    if (state.head.lastSeq > session.log.lastSeq && !(await this.#readOn(session, state))) {
      // What is known of the log holds what was redacted meanwhile: it is read again from its beginning.
      this.forget(ref);
      return this.read(ref);
    }
    session.headId = state.head.headId;
    this.#keep(name, session);
    return session;
  }

  /** False when a redaction was met that reaches what was read before it. */
  async #readOn({ ref, log }: KnownSession, { head }: SessionState): Promise<boolean> {
    // Of a log that is read from its beginning: what was redacted before the state was read comes as redacted.
    const knownSeq = log.lastSeq === 0 ? head.lastSeq : log.lastSeq;
    for await (const { records } of this.#store.read(ref, { afterSeq: log.lastSeq }))
      for (const stored of records) {
        if (stored.seq > knownSeq && isRedaction(stored)) return false;
        log.apply(stored);
      }
    const [...outdated] = log.outdated.splice(0);
    if (outdated.length === 0) return true;
    // A node that had not heard of the redaction has written these.
    await redactRecords(this.#store, ref, outdated, { reason: "It repeats a redacted message." });
    return false;
  }

  /** Counts what a session takes once something was appended to its log. */
  grown(session: KnownSession): void {
    const name = nameOf(session.ref);
    if (this.#known.get(name)?.session === session) this.#keep(name, session);
  }

  #keep(name: string, session: KnownSession): void {
    this.#drop(name);
    const size = session.log.bytes + leastBytes;
    this.#known.set(name, { session, size });
    this.#bytes += size;
    for (const oldest of this.#known.keys()) {
      if (this.#bytes <= mostBytes || oldest === name) return;
      this.#drop(oldest);
    }
  }

  #drop(name: string): void {
    this.#bytes -= this.#known.get(name)?.size ?? 0;
    this.#known.delete(name);
  }

  /** What is known of the session may be wrong: it was redacted, reset or deleted. */
  forget(ref: SessionRef): void {
    this.#drop(nameOf(ref));
  }
}

/** The note that stands behind what a redaction erased. */
function isRedaction({ record }: StoredRecord): boolean {
  const { kind } = (record["data"] ?? {}) as { readonly kind?: unknown };
  return throughlineKind(record) === "note" && kind === "summary-outdated";
}

function nameOf({ namespace, agentId, key }: SessionRef): string {
  return JSON.stringify([namespace, agentId, key]);
}

/** Whether another writer was faster, and the log must be looked at again. */
export function isOvertaken(error: unknown): boolean {
  return (
    hasErrorCode(error, "RECORD_ID_TAKEN") ||
    hasErrorCode(error, "SESSION_NOT_FOUND") ||
    hasErrorCode(error, "SESSION_ARCHIVED")
  );
}
