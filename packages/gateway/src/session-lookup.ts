import { createHash } from "node:crypto";
import {
  type Clock,
  hasErrorCode,
  openSession,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { KeyedQueues, saveOnce, systemRandom, updateEntry } from "@throughline/core/internal";

/** No token can reach this namespace, so a client cannot read or forge notes. */
const lookupNamespace = "throughline.gateway";

export interface GatewayScope {
  readonly namespace: string;
  readonly agentId: string;
  readonly tokenId: string;
}

/**
 * A client repeats its whole conversation in each request. The notes find its session by the first message, the first
 * reply or the id of a reply.
 */
export interface SessionLookup {
  /** Whether other nodes may write to the store. */
  readonly hasNodes: boolean;
  /** Sorts the newest session first. The oldest keys of a note are dropped at the limit. */
  find(scope: GatewayScope, what: LookupKind, id: string): Promise<readonly string[]>;
  /**
   * Finds a reply that the client has, which another node may be storing now. Returns no keys when the note does not
   * appear in time, or when no other node writes to the store.
   */
  awaited(scope: GatewayScope, what: LookupKind, id: string): Promise<readonly string[]>;
  /** Returns the keys that this process has found or noted, without a store read. Another process may know more. */
  remembered(scope: GatewayScope, what: LookupKind, id: string): readonly string[];
  /** Remembers a key without a note, so that a client may use an id before its call is stored. */
  remember(scope: GatewayScope, what: LookupKind, id: string, key: string): void;
  /** Remembers a key at once, and stores it. */
  note(scope: GatewayScope, what: LookupKind, id: string, key: string): Promise<void>;
  prune(beforeMs: number): Promise<void>;
}

type LookupKind = "first-message" | "first-reply" | "response";

/** Limits the sessions per note, because each one is read and compared with the request. */
const mostKeys = 16;
const mostNotes = 4096;
const prunedAtOnce = 200;
/** Limits how long a request polls for the note of a reply that another node may be storing. */
const mostNodeMs = 2000;
const nodePollMs = 100;

/** Holds what this process knows of a note. The state is null when the store has none, as far as is known. */
interface Note {
  readonly keys: readonly string[];
  readonly state: SessionState | null;
}

export function createSessionLookup(store: SessionStore, clock: Clock): SessionLookup {
  const notes = new Map<string, Note>();
  const queues = new KeyedQueues();
  const keep = ({ key }: SessionRef, note: Note): Note => {
    notes.delete(key);
    notes.set(key, note);
    for (const oldest of notes.keys()) {
      if (notes.size <= mostNotes) break;
      notes.delete(oldest);
    }
    return note;
  };
  const find: SessionLookup["find"] = async (scope, what, id) => {
    const ref = refOf(scope, what, id);
    const state = await store.load(ref);
    const noted = notes.get(ref.key)?.keys ?? [];
    return keep(ref, { keys: [...new Set([...noted, ...keysOf(state)])].slice(0, mostKeys), state }).keys;
  };
  const remember = (ref: SessionRef, key: string): Note => {
    const { keys = [], state = null } = notes.get(ref.key) ?? {};
    return keep(ref, { keys: withKey(keys, key), state });
  };
  const save = async (ref: SessionRef, key: string): Promise<void> => {
    const state = notes.get(ref.key)?.state ?? null;
    const entry = { ...(state?.entry ?? { sessionId: systemRandom.uuid() }), keys: withKey(keysOf(state), key) };
    // A save without a read first costs one round trip to the store.
    const written = (await saveUnlessChanged(store, ref, entry, state)) ?? (await addKey(store, ref, key));
    const noted = notes.get(ref.key)?.keys ?? [key];
    keep(ref, { keys: [...new Set([...noted, ...keysOf(written)])].slice(0, mostKeys), state: written });
  };
  const hasNodes = store.capabilities.writers === "many-hosts";
  return {
    hasNodes,
    find,
    async awaited(scope, what, id) {
      if (!hasNodes) return [];
      for (let waitedMs = 0; waitedMs < mostNodeMs; waitedMs += nodePollMs) {
        await clock.sleep(nodePollMs);
        const keys = await find(scope, what, id);
        if (keys.length > 0) return keys;
      }
      return [];
    },
    remembered: (scope, what, id) => notes.get(refOf(scope, what, id).key)?.keys ?? [],
    remember: (scope, what, id, key) => void remember(refOf(scope, what, id), key),
    note(scope, what, id, key) {
      const ref = refOf(scope, what, id);
      remember(ref, key);
      // One after the other, because many conversations may begin alike at once.
      return queues.run(ref.key, () => save(ref, key));
    },
    async prune(beforeMs) {
      for (;;) {
        const { sessions } = await store.list({ namespace: lookupNamespace, untilMs: beforeMs, limit: prunedAtOnce });
        // Remove in parallel: a file store rewrites its session list once for several purges that run together.
        await Promise.all(sessions.map(({ ref }) => store.remove(ref, { purge: true })));
        if (sessions.length < prunedAtOnce) return;
      }
    },
  };
}

/** @param known the state that must not have changed; null for a session that must not exist. Null means a conflict. */
export async function saveUnlessChanged(
  store: SessionStore,
  ref: SessionRef,
  entry: SessionState["entry"],
  known: SessionState | null,
): Promise<SessionState | null> {
  try {
    return await saveOnce(store, ref, entry, known?.revision ?? null);
  } catch (error) {
    if (hasErrorCode(error, "REVISION_CONFLICT")) return null;
    throw error;
  }
}

async function addKey(store: SessionStore, ref: SessionRef, key: string): Promise<SessionState> {
  const { state, isNew } = await openSession(store, ref, { random: systemRandom, entry: { keys: [key] } });
  if (isNew || keysOf(state)[0] === key) return state;
  return updateEntry(store, ref, (entry) => ({ ...entry, keys: withKey(keysOf({ entry }), key) }));
}

function withKey(keys: readonly string[], key: string): readonly string[] {
  return [key, ...keys.filter((one) => one !== key)].slice(0, mostKeys);
}

function keysOf(note: Pick<SessionState, "entry"> | null): readonly string[] {
  const keys = note?.entry["keys"];
  return Array.isArray(keys) ? keys.filter((key) => typeof key === "string") : [];
}

function refOf({ namespace, agentId, tokenId }: GatewayScope, what: LookupKind, id: string): SessionRef {
  const hash = createHash("sha256")
    .update(JSON.stringify([namespace, agentId, tokenId, what, id]))
    .digest("hex");
  return { namespace: lookupNamespace, agentId: "main", key: `agent:main:gateway:direct:${hash.slice(0, 40)}` };
}
