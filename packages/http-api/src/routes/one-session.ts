import { loadExisting, sessionNotFound } from "@throughline/core/internal";
import {
  type RecordPage,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";

/**
 * Finds a session that was read under the ref before. It is still there, or it was archived meanwhile.
 * @throws {ThroughlineError} SESSION_NOT_FOUND
 */
export async function findSame(store: SessionStore, ref: SessionRef, sessionId: string): Promise<SessionState> {
  const current = await store.load(ref);
  if (current?.sessionId === sessionId) return current;
  const archived = await store.load({ ...ref, archiveId: sessionId });
  if (archived !== null) return archived;
  throw sessionNotFound(ref);
}

const maxAttempts = 5;

/**
 * Reads one page together with the session that owns it. The store's page does not name its session, so the session is
 * loaded before and after the read. When a reset happened between, the page is read again.
 *
 * @param sessionId the id of the expected session, also when it was archived; undefined means the session under the ref
 */
export async function readPageOf<Payload extends "source" | "head">(
  store: SessionStore,
  ref: SessionRef,
  options: Parameters<typeof store.read<Payload>>[1],
  sessionId: string | undefined,
): Promise<{ readonly state: SessionState; readonly page: RecordPage<Payload> | null }> {
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const before = sessionId === undefined ? await loadExisting(store, ref) : await findSame(store, ref, sessionId);
    const page = await firstPage(store, before.ref, options);
    const after = await store.load(before.ref);
    if (after?.sessionId === before.sessionId) return { state: after, page };
  }
  throw new ThroughlineError("STORE_LOCKED", "The session was replaced again and again while a page was read.");
}

async function firstPage<Payload extends "source" | "head">(
  store: SessionStore,
  ref: SessionRef,
  options: Parameters<typeof store.read<Payload>>[1],
): Promise<RecordPage<Payload> | null> {
  for await (const page of store.read(ref, options)) return page;
  return null;
}
