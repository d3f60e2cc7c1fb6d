import {
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  quote,
  refused,
  sessionNotFound,
} from "@throughline/core/internal";
import type { SessionRef, SessionState, SessionStore } from "@throughline/core";
import { type Encryption, type ErasureProof, KeyringEncryption } from "./encryption.ts";
import type { Erasure } from "./keyring.ts";

/** States why sessions are erased. */
export interface EraseOptions {
  /** States the reason, which the keyring and the proof keep. It should name no person. */
  readonly reason: string;
  /**
   * Sets whether forks that stay keep the records that they share, under their own keys. A backup has these no more.
   * PostgreSQL cannot do that. @default false: such a session is refused
   */
  readonly keepForks?: boolean | undefined;
}

const eraseTable: OptionTable<EraseOptions> = {
  reason: optionKinds.required(optionKinds.filledText),
  keepForks: optionKinds.flag,
};

/**
 * Purges sessions from the store, then destroys their keys, so that backups of the store do not have them either.
 *
 * A session that others share records of, such as its forks, is erased only together with them, or with `keepForks`.
 * Files are encrypted under the key of their agent: the purge removes them from the store, and a backup keeps them
 * until `destroyKeys({ namespace, agentId })`.
 *
 * After an interruption `resumeErasures` does the rest.
 *
 * @param sessions the sessions; `deleteUser` with `dryRun` lists those of a person, with forks
 * @throws {ThroughlineError} SESSION_NOT_FOUND and SESSION_SHARED before anything is erased, INPUT_INVALID for a keyring
 *   without keys of single sessions, KEYRING_IO, and what the store throws
 */
export async function eraseSessions(
  store: SessionStore,
  encryption: Encryption,
  sessions: readonly SessionRef[],
  options: EraseOptions,
): Promise<ErasureProof> {
  assertKnownOptions<EraseOptions>("eraseSessions", options, eraseTable);
  const begun = await beginErasure(store, encryption, sessions, options);
  // A key is destroyed when nothing of the store needs it: forks that are erased later may share records.
  for (const { ref, sessionId } of begun.sessions) await purge(store, ref, sessionId);
  return begun.finish(begun.sessions);
}

interface ErasedSession {
  readonly ref: SessionRef;
  readonly sessionId: string;
}

/** Holds an erasure whose sessions the caller purges. */
export interface BegunErasure {
  readonly sessions: readonly ErasedSession[];
  /** Destroys the keys of these sessions, also of new ones, and forgets that the others were to be erased. */
  finish(purged: readonly ErasedSession[]): Promise<ErasureProof>;
}

/**
 * Notes that sessions will be erased, so that `resumeErasures` does what an interruption leaves. The caller purges them,
 * and calls `finish`.
 * @throws {ThroughlineError} as `eraseSessions`
 */
export async function beginErasure(
  store: SessionStore,
  encryption: Encryption,
  sessions: readonly SessionRef[],
  { reason, keepForks = false }: EraseOptions,
): Promise<BegunErasure> {
  const own = ownOf(encryption);
  const found: FoundSession[] = [];
  for (const ref of sessions) {
    own.assertErasable({ namespace: ref.namespace, agentId: ref.agentId, sessionId: "any" });
    const state = await store.load(ref);
    if (state === null) throw sessionNotFound(ref);
    found.push({ ref, state });
  }
  if (!keepForks) await assertNotShared(store, found);
  else if (store.fork !== undefined && store.fork.recodesOnPurge !== true)
    throw refused(
      "CAPABILITY_UNSUPPORTED",
      "The store leaves shared records under the key of the session that wrote them.",
    );
  const erasures = found.map(({ ref: { namespace, agentId }, state: { sessionId } }) => ({
    namespace,
    agentId,
    sessionId,
    reason,
  }));
  // Another process that resumes erasures may destroy a key first.
  const keyIds = new Map(erasures.map((erasure) => [erasure.sessionId, own.keyring.idsOf(erasure)]));
  own.keyring.noteErasures(erasures);
  return {
    sessions: found.map(({ ref, state: { sessionId } }) => ({ ref, sessionId })),
    finish: (purged) => {
      const done = purged.map(({ ref: { namespace, agentId }, sessionId }) => ({
        namespace,
        agentId,
        sessionId,
        reason,
      }));
      const ids = new Set(done.map(({ sessionId }) => sessionId));
      for (const erasure of erasures) if (!ids.has(erasure.sessionId)) own.keyring.dropErasure(erasure);
      return destroyed(own, done, { reason, known: done.flatMap(({ sessionId }) => keyIds.get(sessionId) ?? []) });
    },
  };
}

/**
 * Completes the erasures that were interrupted: purges the sessions that are left, and destroys their keys. Returns null
 * when there are none. Call it when a program starts.
 *
 * @throws {ThroughlineError} KEYRING_IO, and what the store throws
 */
export async function resumeErasures(store: SessionStore, encryption: Encryption): Promise<ErasureProof | null> {
  const own = ownOf(encryption);
  const erasures = own.keyring.erasures();
  const [first] = erasures;
  if (first === undefined) return null;
  for (const erasure of erasures) {
    const ref = await findSession(store, erasure);
    if (ref !== null) await purge(store, ref, erasure.sessionId);
  }
  return destroyed(own, erasures, { reason: first.reason, known: [] });
}

interface FoundSession {
  readonly ref: SessionRef;
  readonly state: SessionState;
}

/** The parts of an erasure that the public interface does not have. */
function ownOf(encryption: Encryption): KeyringEncryption {
  if (encryption instanceof KeyringEncryption) return encryption;
  throw refused("INPUT_INVALID", "`encryption` must be what `openEncryption` returned.");
}

/**
 * A store may leave the records that a fork shares under the key of the session that wrote them. A session that shares any of
 * them shares the first one.
 */
async function assertNotShared(store: SessionStore, found: readonly FoundSession[]): Promise<void> {
  const erased = new Set(found.map(({ state }) => state.sessionId));
  for (const { ref, state } of found) {
    const origin = state.entry.forkedFrom as { readonly atSeq?: unknown } | null | undefined;
    const seq = (typeof origin?.atSeq === "number" ? origin.atSeq : 0) + 1;
    if (store.fork === undefined || seq > state.head.lastSeq) continue;
    if (store.fork.sharers === undefined)
      throw refused("CAPABILITY_UNSUPPORTED", "The store cannot tell which sessions share records.");
    const others = (await store.fork.sharers(ref, [seq])).filter(({ sessionId }) => !erased.has(sessionId));
    if (others.length === 0) continue;
    throw refused("SESSION_SHARED", `Session ${quote(ref.key)} shares records with ${others.length} other sessions.`, {
      key: ref.key,
      sharedWith: others.map((other) => other.ref.key),
    });
  }
}

/** A session of another id, which took the key meanwhile, stays. */
async function purge(store: SessionStore, ref: SessionRef, sessionId: string): Promise<void> {
  if ((await store.load(ref))?.sessionId === sessionId) await store.remove(ref, { purge: true });
}

async function destroyed(
  own: KeyringEncryption,
  erasures: readonly Erasure[],
  { reason, known }: { readonly reason: string; readonly known: readonly string[] },
): Promise<ErasureProof> {
  const keyIds = new Set(known);
  for (const erasure of erasures) {
    const { namespace, agentId, sessionId } = erasure;
    const proof = await own.destroyKeys({ namespace, agentId, sessionId }, erasure.reason);
    for (const id of proof.keyIds) keyIds.add(id);
    own.keyring.dropErasure(erasure);
  }
  return own.signed([...keyIds], own.nowMs(), reason);
}

/** A session may have been renamed or archived since its erasure began. */
async function findSession(
  store: SessionStore,
  { namespace, agentId, sessionId }: Erasure,
): Promise<SessionRef | null> {
  let cursor: string | undefined;
  do {
    const page = await store.list({ namespace, agentId, state: "any", cursor });
    const found = page.sessions.find((session) => session.sessionId === sessionId);
    if (found !== undefined) return found.ref;
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return null;
}
