import {
  type Clock,
  type RandomSource,
  type SessionEntry,
  sessionRef,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { entryBlobFields, loadEntryBlobs } from "@throughline/core/internal";
import { agentOfSessionsDir } from "@throughline/openclaw-format/internal";
import type { StoreLock } from "./store-lock.ts";

/** Maps session keys to entries, like `sessions.json`. */
export type EntriesByKey = Record<string, SessionEntry>;

/** Holds the entries of an agent as one read returned them. */
interface LoadedEntries {
  /** Maps session keys to entries without their large fields. */
  readonly entries: EntriesByKey;
  /** States when the entries were read, in UTC milliseconds. */
  readonly loadedAtMs: number;
  /** Holds the store's `entriesMark` from before the read. A different mark now means that an entry changed. */
  readonly mark: string;
}

/** Holds the entries that `loadSessionStore` has read, by agent. */
export type LoadedCache = Map<string, LoadedEntries>;

export interface CompatContext {
  readonly store: SessionStore;
  readonly stateDir: string;
  readonly homeDir: string;
  readonly namespace: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly lock: StoreLock;
  readonly cacheTtlMs: number;
  readonly cache: LoadedCache;
}

/** A path outside any agent's folder means the agent `main`. */
export function agentOf(storePath: string): string {
  return agentOfSessionsDir(storePath) ?? "main";
}

export function refOf(context: CompatContext, agentId: string, key: string): SessionRef {
  return sessionRef({ key, agentId, namespace: context.namespace });
}

/** The object has no prototype, so it takes every key, `__proto__` too. */
export function emptyEntries(): EntriesByKey {
  return Object.create(null) as EntriesByKey;
}

export function hasBlobs(entry: SessionEntry): boolean {
  return entryBlobFields.some((field) => Object.hasOwn(entry, field));
}

/** Adds the large fields to the entry, because OpenClaw's callers expect them inline and do not know `blobsAside`. */
export async function wholeEntry(context: CompatContext, state: SessionState): Promise<SessionEntry> {
  if (!Object.hasOwn(state.entry, "blobsAside")) return state.entry;
  const { blobsAside: _places, ...entry } = state.entry;
  return { ...entry, ...(await loadEntryBlobs(context.store, state)) } as SessionEntry;
}
