import { createHash } from "node:crypto";
import { openSession, type SessionRef, type SessionState, type SessionStore } from "@throughline/core";
import { systemRandom, updateEntry } from "@throughline/core/internal";
import { saveNew, saveUnchanged } from "./save-once.ts";

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
  /** Sorts the newest session first. The oldest keys of a note are dropped at the limit. */
  find(scope: GatewayScope, what: LookupKind, id: string): Promise<readonly string[]>;
  /** Returns the keys that this process has found or noted, without a store read. Another process may know more. */
  remembered(scope: GatewayScope, what: LookupKind, id: string): readonly string[];
  note(scope: GatewayScope, what: LookupKind, id: string, key: string): Promise<void>;
  prune(beforeMs: number): Promise<void>;
}

type LookupKind = "first-message" | "first-reply" | "response";

/** Limits the sessions per note, because each one is read and compared with the request. */
const mostKeys = 16;
const mostNotes = 4096;

const prunedAtOnce = 200;

export function createSessionLookup(store: SessionStore): SessionLookup {
  /** Caches notes by key. Null means that the store had no note. */
  const notes = new Map<string, SessionState | null>();
  const remember = ({ key }: SessionRef, state: SessionState | null): void => {
    notes.delete(key);
    notes.set(key, state);
    for (const oldest of notes.keys()) {
      if (notes.size <= mostNotes) return;
      notes.delete(oldest);
    }
  };
  return {
    async find(scope, what, id) {
      const ref = refOf(scope, what, id);
      const state = await store.load(ref);
      remember(ref, state);
      return keysOf(state);
    },
    remembered: (scope, what, id) => keysOf(notes.get(refOf(scope, what, id).key) ?? null),
    async note(scope, what, id, key) {
      const ref = refOf(scope, what, id);
      const known = notes.get(ref.key) ?? null;
      const written =
        known === null
          ? await saveNew(store, ref, { keys: [key] })
          : await saveUnchanged(store, known, { ...known.entry, keys: withKey(known, key) });
      remember(ref, written ?? (await addKey(store, ref, key)));
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

async function addKey(store: SessionStore, ref: SessionRef, key: string): Promise<SessionState> {
  const { state, isNew } = await openSession(store, ref, { random: systemRandom, entry: { keys: [key] } });
  if (isNew || keysOf(state)[0] === key) return state;
  return updateEntry(store, ref, (entry) => ({ ...entry, keys: withKey({ entry }, key) }));
}

function withKey(note: Pick<SessionState, "entry">, key: string): readonly string[] {
  return [key, ...keysOf(note).filter((one) => one !== key)].slice(0, mostKeys);
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
