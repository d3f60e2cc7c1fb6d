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

/** Entries by session key, as `sessions.json` has them. */
export type EntriesByKey = Record<string, SessionEntry>;

/** What was read of an agent's sessions. */
interface LoadedEntries {
  /** The entries by session key, without the large fields. */
  readonly entries: EntriesByKey;
  /** When they were read, UTC milliseconds. */
  readonly loadedAtMs: number;
  /** The store's `entriesMark` from before it was read. */
  readonly mark: string;
}

/** What `loadSessionStore` has read, by agent. */
export type LoadedCache = Map<string, LoadedEntries>;

/** What the functions share. */
export interface CompatContext {
  readonly store: SessionStore;
  readonly stateDir: string;
  readonly homeDir: string;
  readonly namespace: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly lock: StoreLock;
  readonly cacheTtlMs: number;
  /** Of `loadSessionStore`, by agent. */
  readonly cache: LoadedCache;
}

/** The agent whose index the path is; `main` for one that lies in no agent's folder. */
export function agentOf(storePath: string): string {
  return agentOfSessionsDir(storePath) ?? "main";
}

export function refOf(context: CompatContext, agentId: string, key: string): SessionRef {
  return sessionRef({ key, agentId, namespace: context.namespace });
}

/** An object that takes every key, `__proto__` too. */
export function emptyEntries(): EntriesByKey {
  return Object.create(null) as EntriesByKey;
}

/** True when large fields stand in the entry itself. */
export function hasBlobs(entry: SessionEntry): boolean {
  return entryBlobFields.some((field) => Object.hasOwn(entry, field));
}

/** The entry with its large fields in it, as a program that knows nothing of where they lie expects it. */
export async function wholeEntry(context: CompatContext, state: SessionState): Promise<SessionEntry> {
  if (!Object.hasOwn(state.entry, "blobsAside")) return state.entry;
  const { blobsAside: _places, ...entry } = state.entry;
  return { ...entry, ...(await loadEntryBlobs(context.store, state)) } as SessionEntry;
}
