import { appendOnce, hasErrorCode, type SessionEntry, type SessionState } from "@throughline/core";
import { mergeEntry, patchEntry, setBlobsAside } from "@throughline/core/internal";
import {
  agentOf,
  emptyEntries,
  hasBlobs,
  refOf,
  wholeEntry,
  type CompatContext,
  type EntriesByKey,
} from "./compat-context.ts";
import type { LockOptions } from "./store-lock.ts";

/** Options of `loadSessionStore`. */
export interface LoadSessionStoreOptions {
  /** Reads the store whatever was read before. @default false */
  readonly skipCache?: boolean;
  /**
   * Gives `skillsSnapshot` and `systemPromptReport` too, one read for each; without, an entry says in `blobsAside` that it
   * has them. What is given so is never cached. @default false
   */
  readonly withBlobs?: boolean;
}

/** Options of `updateSessionStore`. */
export interface UpdateStoreOptions extends LockOptions {
  /** OpenClaw keeps this session when it prunes others. Nothing is pruned here, so it has no effect. */
  readonly activeSessionKey?: string;
  /** Skips OpenClaw's pruning. Nothing is pruned here, so it has no effect. */
  readonly skipMaintenance?: boolean;
}

/** Saves are tried so often when others write the same entry. */
const maxAttempts = 64;

/**
 * Every session of the agent whose index the path is, by key. Entries that were loaded within the cache's time are
 * reused while the store reports no change of an entry. A store that cannot report this is read. Updates never start
 * from it. The result is the caller's own.
 */
export async function loadSessionStore(
  context: CompatContext,
  storePath: string,
  { skipCache = false, withBlobs = false }: LoadSessionStoreOptions = {},
): Promise<EntriesByKey> {
  const agentId = agentOf(storePath);
  if (withBlobs) return loadWhole(context, agentId);
  // Before it is read: what changes meanwhile has another mark.
  const mark = await markOf(context, agentId);
  const loadedAtMs = context.clock.nowMs();
  const cached = context.cache.get(agentId);
  const isCurrent = mark !== null && cached?.mark === mark && loadedAtMs - cached.loadedAtMs < context.cacheTtlMs;
  if (!skipCache && isCurrent) return copyOf(cached.entries);
  const entries = emptyEntries();
  for (const { ref, entry } of await readStates(context, agentId)) entries[ref.key] = entry;
  if (mark !== null) context.cache.set(agentId, { entries: copyOf(entries), loadedAtMs, mark });
  return entries;
}

/** Null: there is nothing to be cached, or nobody can tell whether it is still so. */
async function markOf({ store, namespace, cacheTtlMs }: CompatContext, agentId: string): Promise<string | null> {
  return cacheTtlMs > 0 ? ((await store.entriesMark?.({ namespace, agentId })) ?? null) : null;
}

async function loadWhole(context: CompatContext, agentId: string): Promise<EntriesByKey> {
  const entries = emptyEntries();
  for (const state of await readStates(context, agentId)) entries[state.ref.key] = await wholeEntry(context, state);
  return entries;
}

/** Makes the store hold these entries and no others. A session that is not among them is archived, never deleted. */
export async function saveSessionStore(
  context: CompatContext,
  storePath: string,
  entries: EntriesByKey,
): Promise<void> {
  await updateSessionStore(context, storePath, (store) => {
    for (const key of Object.keys(store)) if (!Object.hasOwn(entries, key)) delete store[key];
    for (const [key, entry] of Object.entries(entries)) store[key] = entry;
  });
}

/**
 * Reads, changes and writes as one step, under the store's lock. Only what the mutator changed is written, field by
 * field, so that a turn that counts its tokens meanwhile loses nothing.
 */
export async function updateSessionStore<Result>(
  context: CompatContext,
  storePath: string,
  mutator: (store: EntriesByKey) => Result | Promise<Result>,
  options: UpdateStoreOptions = {},
): Promise<Result> {
  const agentId = agentOf(storePath);
  const { activeSessionKey: _active, skipMaintenance: _skip, ...lockOptions } = options;
  return context.lock.run(
    agentId,
    async () => {
      const before = new Map((await readStates(context, agentId)).map((state) => [state.ref.key, state]));
      const entries = emptyEntries();
      for (const [key, { entry }] of before) entries[key] = structuredClone(entry);
      const result = await mutator(entries);
      try {
        let isWritten = false;
        for (const [key, entry] of Object.entries(entries))
          if (await saveChanges(context, agentId, { key, entry, state: before.get(key) ?? null })) isWritten = true;
        for (const [key, { ref }] of before)
          if (!Object.hasOwn(entries, key)) {
            await context.store.move(ref, { kind: "archive" });
            isWritten = true;
          }
        if (!isWritten) await settle(context, before.values());
      } finally {
        context.cache.delete(agentId);
      }
      return result;
    },
    lockOptions,
  );
}

/**
 * What was read may be of a write whose flush failed, and then it is not on the disk. A store acknowledges nothing behind such
 * a write, so an append without records says that it is.
 */
async function settle({ store, random }: CompatContext, states: Iterable<SessionState>): Promise<void> {
  const [first] = states;
  if (first === undefined) return;
  await appendOnce(store, first.ref, [], { idempotencyKey: random.uuid(), isNewKey: true });
}

/** Writes what is different in one entry, over whatever it has become meanwhile. False: there is nothing to be written. */
async function saveChanges(
  context: CompatContext,
  agentId: string,
  { key, entry, state }: { readonly key: string; readonly entry: SessionEntry; readonly state: SessionState | null },
): Promise<boolean> {
  const ref = refOf(context, agentId, key);
  const patch = differences(state?.entry ?? null, entry);
  if (state !== null && Object.keys(patch).length === 0) return false;
  let current = state;
  for (let attempt = 0; ; attempt++) {
    const merged = current === null ? { ...entry } : mergeEntry(current.entry, patch, { nowMs: 0, activity: "touch" });
    try {
      await context.store.save(ref, merged, { ifRevision: current?.revision ?? null });
      if (hasBlobs(merged)) await setBlobsAside(context.store, ref);
      return true;
    } catch (error) {
      if (!hasErrorCode(error, "REVISION_CONFLICT") || attempt >= maxAttempts) throw error;
    }
    current = await context.store.load(ref);
  }
}

/** The fields that are others now; one that is gone is there as `undefined`. */
function differences(before: SessionEntry | null, after: SessionEntry): Readonly<Record<string, unknown>> {
  if (before === null) return after;
  const patch: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(after)) {
    if (!Object.hasOwn(before, field) || JSON.stringify(before[field]) !== JSON.stringify(value))
      define(patch, field, value);
  }
  for (const field of Object.keys(before)) if (!Object.hasOwn(after, field)) define(patch, field, undefined);
  return patch;
}

function define(fields: object, name: string, value: unknown): void {
  Object.defineProperty(fields, name, { value, enumerable: true, writable: true, configurable: true });
}

async function readStates(context: CompatContext, agentId: string): Promise<readonly SessionState[]> {
  const states: SessionState[] = [];
  let cursor: string | null = null;
  do {
    const page = await context.store.list({
      namespace: context.namespace,
      agentId,
      sort: "key",
      limit: 1000,
      ...(cursor === null ? {} : { cursor }),
    });
    states.push(...page.sessions);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return states;
}

function copyOf(entries: EntriesByKey): EntriesByKey {
  const copy = emptyEntries();
  for (const [key, entry] of Object.entries(entries)) copy[key] = patchEntry(entry, {});
  return copy;
}
