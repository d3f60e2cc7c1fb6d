import { allowAsLarge } from "./entry-bounds.ts";
import { withSystemPorts } from "./node/system-ports.ts";
import { portKinds } from "./port-kinds.ts";
import { assertKnownOptions, optionKinds, type OptionTable } from "./option-checks.ts";
import { isUnknown } from "./append-once.ts";
import type { RandomSource } from "./ports.ts";
import { isSameJson } from "./same-json.ts";
import { patchEntry, type SessionEntry } from "./session-entry.ts";
import type { SessionRef } from "./session-ref.ts";
import type { SessionStore } from "./session-store.ts";
import type { SessionState } from "./session-state.ts";
import { hasErrorCode, ThroughlineError } from "./throughline-error.ts";

/** A compare-and-swap is tried this many times before the contention is reported. */
const maxAttempts = 64;

/** Sets the randomness and the entry of a session that `openSession` creates. */
export interface OpenSessionOptions {
  /** Creates the ids of new sessions. @default the system's randomness */
  readonly random?: RandomSource | undefined;
  /** Sets fields of the entry for a session that must be created; a `sessionId` among them is used. */
  readonly entry?: Readonly<Record<string, unknown>> | undefined;
}

/** Holds an opened session, and whether the call created it. */
export interface OpenedSession {
  /** Holds the current state of the session in the store. */
  readonly state: SessionState;
  /** States whether this call created the session. */
  readonly isNew: boolean;
}

const { callback, object } = optionKinds;
const openTable: OptionTable<OpenSessionOptions> = { random: portKinds.random, entry: object };
const resetTable: OptionTable<ResetSessionOptions> = { random: portKinds.random, keep: callback };

/**
 * Loads the session, or creates it. Two concurrent callers open the same session.
 * @throws {ThroughlineError} INPUT_INVALID, and what the store throws
 */
export async function openSession(
  store: SessionStore,
  ref: SessionRef,
  options: OpenSessionOptions = {},
): Promise<OpenedSession> {
  assertKnownOptions<OpenSessionOptions>("openSession", options, openTable);
  const { random, entry: fields = {} } = withSystemPorts(options);
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const loaded = await store.load(ref);
    if (loaded !== null) return { state: loaded, isNew: false };
    const entry: SessionEntry = patchEntry({ sessionId: random.uuid() }, fields);
    try {
      return { state: await saveOnce(store, ref, entry, null), isNew: true };
    } catch (error) {
      if (!hasErrorCode(error, "REVISION_CONFLICT")) throw error;
    }
  }
  throw contended(ref);
}

/**
 * Changes the entry by a pure, synchronous function of its newest value. The change is repeated until no other writer
 * was faster. A function that returns the given entry writes nothing.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, REVISION_CONFLICT after 64 lost races
 */
export async function updateEntry(
  store: SessionStore,
  ref: SessionRef,
  change: (entry: SessionEntry) => SessionEntry,
): Promise<SessionState> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const loaded = await loadExisting(store, ref);
    const entry = change(loaded.entry);
    if (entry === loaded.entry) return loaded;
    allowAsLarge(entry, entry, loaded.entry);
    try {
      return await saveOnce(store, ref, entry, loaded.revision);
    } catch (error) {
      if (!hasErrorCode(error, "REVISION_CONFLICT")) throw error;
    }
  }
  throw contended(ref);
}

/** The limit includes the first attempt to save. */
const maxSaves = 4;

/**
 * Saves the entry once. If the outcome is unknown, the write is repeated with the same revision, which the store
 * accepts if the first attempt did not arrive. Else it is repeated with the revision that the first attempt led to.
 * Only a save that the store acknowledges counts: the entry that a read returns may be in the page cache only.
 */
export async function saveOnce(
  store: SessionStore,
  ref: SessionRef,
  entry: SessionEntry,
  ifRevision: number | null,
): Promise<SessionState> {
  let unknown: ThroughlineError | null = null;
  let revision = ifRevision;
  // A store returns the entry as plain JSON, so the comparison uses that form.
  const wanted: unknown = JSON.parse(JSON.stringify(entry));
  for (let attempt = 1; ; attempt++) {
    try {
      return await store.save(ref, entry, { ifRevision: revision });
    } catch (error) {
      if (unknown === null && !isUnknown(error)) throw error;
      unknown ??= error as ThroughlineError;
      if (attempt >= maxSaves) throw unknown;
      if (!hasErrorCode(error, "REVISION_CONFLICT")) continue;
      const now = await store.load(ref);
      if (now === null || !isSameJson(now.entry, wanted)) throw unknown;
      revision = now.revision;
    }
  }
}

/** Sets the randomness of `resetSession`, and the fields that the new session keeps. */
export interface ResetSessionOptions {
  /** Creates the ids of new sessions. @default the system's randomness */
  readonly random?: RandomSource;
  /** Returns the fields of the old entry that the new session keeps. @default nothing but the list of earlier ids */
  readonly keep?: (entry: SessionEntry) => Readonly<Record<string, unknown>>;
}

/**
 * Starts a new session under the key. The old session is archived in the same commit and stays reachable by its id.
 * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND
 */
export async function resetSession(
  store: SessionStore,
  ref: SessionRef,
  options: ResetSessionOptions = {},
): Promise<SessionState> {
  assertKnownOptions<ResetSessionOptions>("resetSession", options, resetTable);
  return updateEntry(store, ref, (entry) => followingEntry(entry, options));
}

export function followingEntry(entry: SessionEntry, options: ResetSessionOptions): SessionEntry {
  const { random, keep } = withSystemPorts(options);
  const sessionId = random.uuid();
  const previousSessionIds = [...earlierIds(entry["previousSessionIds"]), entry.sessionId];
  const kept = keep?.(entry) ?? {};
  const following = patchEntry({ sessionId }, { ...kept, sessionId, previousSessionIds });
  // Only the kept fields are compared with the old entry, because the list of ids grows by one at every reset.
  allowAsLarge(following, kept, entry);
  return following;
}

/** Another program may have written a value that is not a list of ids. */
export function earlierIds(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((id) => typeof id === "string") : [];
}

/**
 * Loads a session that must exist.
 * @throws {ThroughlineError} SESSION_NOT_FOUND
 */
export async function loadExisting(store: SessionStore, ref: SessionRef): Promise<SessionState> {
  const loaded = await store.load(ref);
  if (loaded === null) throw sessionNotFound(ref);
  return loaded;
}

/** Creates the error for a session that a store does not hold. */
export function sessionNotFound(ref: SessionRef): ThroughlineError {
  const archived = ref.archiveId === undefined ? "" : ` with archive id ${JSON.stringify(ref.archiveId)}`;
  return new ThroughlineError(
    "SESSION_NOT_FOUND",
    `Agent ${JSON.stringify(ref.agentId)} has no session ${JSON.stringify(ref.key)}${archived}.`,
    { outcome: "not-applied", details: { ...ref } },
  );
}

function contended(ref: SessionRef): ThroughlineError {
  return new ThroughlineError(
    "REVISION_CONFLICT",
    `The entry of ${JSON.stringify(ref.key)} was changed by others ${maxAttempts} times in a row.`,
    { outcome: "not-applied", details: { ...ref } },
  );
}
