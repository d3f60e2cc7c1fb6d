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
 * Finds the first of `key`, `key-2`, `key-3`, … that no session holds. Two callers at once may get the same one.
 * @throws {ThroughlineError} ABORTED, and what the store throws
 */
export async function freeRef(store: SessionStore, ref: SessionRef, signal?: AbortSignal): Promise<SessionRef> {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? ref : { ...ref, key: `${ref.key}-${number}` };
    if ((await store.load(candidate, signal === undefined ? {} : { signal })) === null) return candidate;
  }
}

/** Options of `createSession`. */
export interface CreateSessionOptions {
  /** What the session is called; null leaves it to its key. */
  readonly label: string | null;
  /** The key it must have; null derives a free one from the label. */
  readonly key: string | null;
  /** The id of the new session, unique in the store. */
  readonly sessionId: string;
  /** More fields of the entry, such as the folder: `{ cwd: "/srv/app" }`. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /** Ends the search for a free key. */
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
 * Creates an empty session.
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
      // Somebody took the key between the look and the write; a derived key is tried again with the next number.
      if (key === null) continue;
      throw sessionExists(ref);
    }
  }
}

/** The error of a key that is taken: SESSION_EXISTS. */
export function sessionExists(ref: SessionRef): ThroughlineError {
  const message = `Agent ${ref.agentId} has a session ${JSON.stringify(ref.key)} already.`;
  return new ThroughlineError("SESSION_EXISTS", message, { outcome: "not-applied", details: { ...ref } });
}
