import { assertKnownOptions, optionKinds, type OptionTable } from "../option-checks.ts";
import { hasErrorCode, ThroughlineError } from "../throughline-error.ts";
import { sessionRef } from "../session-ref.ts";
import type { SessionEntry } from "../session-entry.ts";
import type { SessionRef } from "../session-ref.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";
import type { SessionScope } from "./resolve-session.ts";
import { terminalSessionKey } from "./terminal-keys.ts";

/**
 * Finds the first of `key`, `key-2`, `key-3`, … that no session holds. Two concurrent callers may get the same key, so
 * the caller must handle a conflict.
 * @throws {ThroughlineError} ABORTED, and what the store throws
 */
export async function freeRef(store: SessionStore, ref: SessionRef, signal?: AbortSignal): Promise<SessionRef> {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? ref : { ...ref, key: `${ref.key}-${number}` };
    if ((await store.load(candidate, signal === undefined ? {} : { signal })) === null) return candidate;
  }
}

/** Sets the label, the key and the id of a session that `createSession` creates. */
export interface CreateSessionOptions {
  /** Sets the label of the session; null stores no label. */
  readonly label: string | null;
  /** Sets the key of the session; null derives a free key from the label. */
  readonly key: string | null;
  /** Sets the id of the session, which is unique in the store. */
  readonly sessionId: string;
  /** Adds fields to the entry, such as the folder: `{ cwd: "/srv/app" }`. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /** Aborts the search for a free key. */
  readonly signal?: AbortSignal;
}

const { object, orNull, required, signal: signalKind, text } = optionKinds;
const createTable: OptionTable<CreateSessionOptions> = {
  label: required(orNull(text)),
  key: required(orNull(text)),
  sessionId: required(text),
  entry: object,
  signal: signalKind,
};

/**
 * Creates an empty session and returns its state.
 * @throws {ThroughlineError} SESSION_EXISTS for a key of the caller's that is taken, KEY_INVALID, KEY_AGENT_MISMATCH
 */
export async function createSession(
  store: SessionStore,
  scope: SessionScope,
  options: CreateSessionOptions,
): Promise<SessionState> {
  assertKnownOptions<CreateSessionOptions>("createSession", options, createTable);
  const { namespace, agentId, isAgentGiven } = scope;
  const { label, key, sessionId, signal } = options;
  const entry: SessionEntry = { ...options.entry, sessionId, ...(label === null ? {} : { label }) };
  const given = isAgentGiven ? { agentId } : {};
  const wanted = key ?? terminalSessionKey(agentId, label ?? "session");
  const ref = sessionRef({ key: wanted, namespace, ...given });
  for (;;) {
    const target = key === null ? await freeRef(store, ref, signal) : ref;
    try {
      return await store.save(target, entry, { ifRevision: null });
    } catch (error) {
      if (!hasErrorCode(error, "REVISION_CONFLICT")) throw error;
      // Another process took the key after the lookup. A derived key is retried with the next number.
      if (key === null) continue;
      throw sessionExists(ref);
    }
  }
}

export function sessionExists(ref: SessionRef): ThroughlineError {
  const message = `Agent ${ref.agentId} has a session ${JSON.stringify(ref.key)} already.`;
  return new ThroughlineError("SESSION_EXISTS", message, { outcome: "not-applied", details: { ...ref } });
}
