import { createHash } from "node:crypto";
import { openSession, updateEntry, type SessionRef, type SessionStore } from "@throughline/core";
import { systemRandom } from "@throughline/core/node";

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
  note(scope: GatewayScope, what: LookupKind, id: string, key: string): Promise<void>;
  /** Removes what nobody has asked for. */
  prune(beforeMs: number): Promise<void>;
}

type LookupKind = "first-message" | "first-reply" | "response";

/** Sessions that begin alike: more are not tried. */
const mostKeys = 16;

const prunedAtOnce = 200;

export function createSessionLookup(store: SessionStore): SessionLookup {
  return {
    async find(scope, what, id) {
      const state = await store.load(refOf(scope, what, id));
      return state === null ? [] : keysOf(state.entry);
    },
    async note(scope, what, id, key) {
      const ref = refOf(scope, what, id);
      const { state, isNew } = await openSession(store, ref, { random: systemRandom, entry: { keys: [key] } });
      if (isNew || keysOf(state.entry)[0] === key) return;
      await updateEntry(store, ref, (entry) => {
        const keys = [key, ...keysOf(entry).filter((one) => one !== key)].slice(0, mostKeys);
        return { ...entry, keys };
      });
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

function keysOf({ keys }: Readonly<Record<string, unknown>>): readonly string[] {
  return Array.isArray(keys) ? keys.filter((key) => typeof key === "string") : [];
}

function refOf({ namespace, agentId, tokenId }: GatewayScope, what: LookupKind, id: string): SessionRef {
  const hash = createHash("sha256")
    .update(JSON.stringify([namespace, agentId, tokenId, what, id]))
    .digest("hex");
  return { namespace: lookupNamespace, agentId: "main", key: `agent:main:gateway:direct:${hash.slice(0, 40)}` };
}
