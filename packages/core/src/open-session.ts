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

/** How often a compare-and-swap is tried again before the contention is reported. */
const maxAttempts = 64;

/** Options of `openSession`. */
export interface OpenSessionOptions {
  /** Makes the ids of new sessions. @default the system's randomness */
  readonly random?: RandomSource;
  /** Fields of the entry when the session has to be created; a given sessionId is used. */
  readonly entry?: Readonly<Record<string, unknown>>;
}

/** An opened session, and whether the call created it. */
export interface OpenedSession {
  /** The session as the store has it now. */
  readonly state: SessionState;
  /** True when this call created the session. */
  readonly isNew: boolean;
}

const { callback, object } = optionKinds;
const openTable: OptionTable<OpenSessionOptions> = { random: portKinds.random, entry: object };
const resetTable: OptionTable<ResetSessionOptions> = { random: portKinds.random, keep: callback };

/**
 * Loads the session, or creates it. Two callers at once open the same one.
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
 * Changes the entry by a pure, synchronous function of its newest value, again and again until no one was faster.
 * Returning the given entry writes nothing.
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

/** A save whose outcome is unknown is tried this many times in all. */
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
  // As a store returns it.
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

/** Options of `resetSession`. */
export interface ResetSessionOptions {
  /** Makes the ids of new sessions. @default the system's randomness */
  readonly random?: RandomSource;
  /** What the new session keeps of the old entry. @default nothing but the list of earlier ids */
  readonly keep?: (entry: SessionEntry) => Readonly<Record<string, unknown>>;
}

/**
 * Begins a new session under the key. The old one is archived in the same commit and stays reachable by its id.
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

/** The entry of the session that follows one with this entry at a reset. */
export function followingEntry(entry: SessionEntry, options: ResetSessionOptions): SessionEntry {
  const { random, keep } = withSystemPorts(options);
  const sessionId = random.uuid();
  const previousSessionIds = [...earlierIds(entry["previousSessionIds"]), entry.sessionId];
  const kept = keep?.(entry) ?? {};
  const following = patchEntry({ sessionId }, { ...kept, sessionId, previousSessionIds });
  // The list of ids is no larger part of it: it grows by one.
  allowAsLarge(following, kept, entry);
  return following;
}

/** What another program may have written there is no list of ids. */
function earlierIds(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((id) => typeof id === "string") : [];
}

/** @throws {ThroughlineError} SESSION_NOT_FOUND */
/** Loads a session that must exist. @throws {ThroughlineError} SESSION_NOT_FOUND */
export async function loadExisting(store: SessionStore, ref: SessionRef): Promise<SessionState> {
  const loaded = await store.load(ref);
  if (loaded === null) throw sessionNotFound(ref);
  return loaded;
}

/** The error for a session that a store does not hold. */
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
