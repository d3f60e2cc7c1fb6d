import { createHash } from "node:crypto";
import { openSession, type SessionRef, type SessionState, type SessionStore } from "@throughline/core";
import { systemRandom, updateEntry } from "@throughline/core/internal";
import { saveNew, saveUnchanged } from "./save-once.ts";

/** The namespace of the notes; no token reaches it. */
const lookupNamespace = "throughline.gateway";

/** Whose sessions are meant: those of one token. */
export interface GatewayScope {
  readonly namespace: string;
  readonly agentId: string;
  readonly tokenId: string;
}

/** Notes which sessions a conversation may be, by what is known of it: how it begins, its first reply, the id of a reply. */
export interface SessionLookup {
  /** Keys of sessions, the newest first. */
  find(scope: GatewayScope, what: LookupKind, id: string): Promise<readonly string[]>;
  /** What this process has found or noted of it, without a look at the store: another process may know more. */
  remembered(scope: GatewayScope, what: LookupKind, id: string): readonly string[];
  note(scope: GatewayScope, what: LookupKind, id: string, key: string): Promise<void>;
  /** Removes what nobody has asked for. */
  prune(beforeMs: number): Promise<void>;
}

type LookupKind = "first-message" | "first-reply" | "response";

/** Sessions that begin alike: more are not tried. */
const mostKeys = 16;
/** How many notes are remembered, those that were used last. */
const mostNotes = 4096;

const prunedAtOnce = 200;

export function createSessionLookup(store: SessionStore): SessionLookup {
  /** By the keys of the notes. Null: the store had none. */
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
        // At once, because a store in files writes its list of sessions again for every purge, or once for several.
        await Promise.all(sessions.map(({ ref }) => store.remove(ref, { purge: true })));
        if (sessions.length < prunedAtOnce) return;
      }
    },
  };
}

/** Adds a key to a note of which nothing is known. */
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
