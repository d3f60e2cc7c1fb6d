import { hasErrorCode, sessionRef, ThroughlineError } from "@throughline/core";
import type { SessionEntry, SessionRef, SessionState, SessionStore } from "@throughline/core";
import { peerSessionKey, sessionKeySlug } from "@throughline/core/keys";
import type { SessionScope } from "@throughline/queries";

/** The key the command line gives a session of its own: `agent:<agent>:cli:direct:<label-slug>`. */
export function labelKey(agentId: string, label: string): string {
  return peerSessionKey({ agentId, channel: "cli", peerKind: "direct", peerId: sessionKeySlug(label) });
}

/** The first of `key`, `key-2`, `key-3`, … that no session holds. Two callers at once may get the same one. */
export async function freeRef(store: SessionStore, ref: SessionRef, signal?: AbortSignal): Promise<SessionRef> {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? ref : { ...ref, key: `${ref.key}-${number}` };
    if ((await store.load(candidate, signal === undefined ? {} : { signal })) === null) return candidate;
  }
}

export interface CreateSessionOptions {
  /** @default none: the key names it */
  readonly label: string | null;
  /** A key of the caller's; taken, it is refused. Null: one is made from the label. */
  readonly key: string | null;
  readonly sessionId: string;
  readonly signal?: AbortSignal;
}

/**
 * A new, empty session.
 * @throws {ThroughlineError} SESSION_EXISTS for a key of the caller's that is taken, KEY_INVALID, KEY_AGENT_MISMATCH
 */
export async function createSession(
  store: SessionStore,
  { namespace, agentId, isAgentGiven }: SessionScope,
  { label, key, sessionId, signal }: CreateSessionOptions,
): Promise<SessionState> {
  const entry: SessionEntry = { sessionId, ...(label === null ? {} : { label }) };
  const given = isAgentGiven ? { agentId } : {};
  const wanted = key ?? labelKey(agentId, label ?? "session");
  const ref = sessionRef({ key: wanted, namespace, ...given });
  for (;;) {
    const target = key === null ? await freeRef(store, ref, signal) : ref;
    try {
      return await store.save(target, entry, { ifRevision: null });
    } catch (error) {
      if (!hasErrorCode(error, "REVISION_CONFLICT")) throw error;
      // Somebody took the key between the look and the write; a key of ours is tried again with the next number.
      if (key === null) continue;
      throw sessionExists(ref);
    }
  }
}

export function sessionExists(ref: SessionRef): ThroughlineError {
  const message = `Agent ${ref.agentId} has a session ${JSON.stringify(ref.key)} already.`;
  return new ThroughlineError("SESSION_EXISTS", message, { outcome: "not-applied", details: { ...ref } });
}
