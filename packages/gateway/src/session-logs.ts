import {
  hasErrorCode,
  redactRecords,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type StoredRecord,
} from "@throughline/core";
import { throughlineKind } from "@throughline/core/internal";
import { WireLog } from "./wire/index.ts";

export interface KnownSession {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly log: WireLog;
  /** Is the newest head that this process knows. Another process may have moved it. */
  headId: string | null;
}

const mostBytes = 64 * 1024 * 1024;
/** Approximates the memory for a session without messages, so that many empty sessions count too. */
const leastBytes = 4 * 1024;

/** Caches the logs of sessions, so that a call does not read its session from the start. */
export class SessionLogs {
  readonly #store: SessionStore;
  /**
   * Orders entries by last use, oldest first. `size` is the size at the last count, because a log grows between counts.
   */
  readonly #known = new Map<string, { readonly session: KnownSession; readonly size: number }>();
  #bytes = 0;

  constructor(store: SessionStore) {
    this.#store = store;
  }

  /** Returns the cached session, or null. Another process may have changed or removed the session. */
  remembered(ref: SessionRef): KnownSession | null {
    return this.#known.get(nameOf(ref))?.session ?? null;
  }

  /** Caches a session that was just created, which needs no read because it has no records. */
  begun(ref: SessionRef, { sessionId }: Pick<SessionState, "sessionId">): KnownSession {
    this.forget(ref);
    const session = { ref, sessionId, log: new WireLog(), headId: null };
    this.#keep(nameOf(ref), session);
    return session;
  }

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
      // The cached log holds text that was redacted meanwhile, so it is read again from the start.
      this.forget(ref);
      return this.read(ref);
    }
    session.headId = state.head.headId;
    this.#keep(name, session);
    return session;
  }

  /** Applies new records to the log. False means that a redaction affects records that were applied earlier. */
  async #readOn({ ref, log }: KnownSession, { head }: SessionState): Promise<boolean> {
    // While a log is read from the start, records redacted before the state was loaded already arrive redacted. Only
    // later redactions matter.
    const knownSeq = log.lastSeq === 0 ? head.lastSeq : log.lastSeq;
    for await (const { records } of this.#store.read(ref, { afterSeq: log.lastSeq }))
      for (const stored of records) {
        if (stored.seq > knownSeq && isRedaction(stored)) return false;
        log.apply(stored);
      }
    const [...outdated] = log.outdated.splice(0);
    if (outdated.length === 0) return true;
    // A node that had not seen the redaction wrote these copies of the redacted text, so they are redacted too.
    await redactRecords(this.#store, ref, outdated, { reason: "It repeats a redacted message." });
    return false;
  }

  /** Updates the size of a session after an append, so that the limit stays accurate. */
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

  /** Drops a session that was redacted, reset or deleted, because its cached log may be wrong. */
  forget(ref: SessionRef): void {
    this.#drop(nameOf(ref));
  }
}

/** A redaction always appends this note, so the note reveals it to other processes. */
function isRedaction({ record }: StoredRecord): boolean {
  const { kind } = (record["data"] ?? {}) as { readonly kind?: unknown };
  return throughlineKind(record) === "note" && kind === "summary-outdated";
}

function nameOf({ namespace, agentId, key }: SessionRef): string {
  return JSON.stringify([namespace, agentId, key]);
}

/** Returns whether another writer changed the session first, so that the log must be read again. */
export function isOvertaken(error: unknown): boolean {
  return hasErrorCode(error, "APPEND_CONFLICT", "RECORD_ID_TAKEN", "SESSION_NOT_FOUND", "SESSION_ARCHIVED");
}
