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

/** Holds the options of `loadSessionStore`. */
export interface LoadSessionStoreOptions {
  /** Reads the store without using the cache. @default false */
  readonly skipCache?: boolean | undefined;
  /**
   * Adds `skillsSnapshot` and `systemPromptReport` to the entries, with one extra read for each. Without this option,
   * an entry lists them in `blobsAside`. A result with large fields is never cached.
   * @default false
   */
  readonly withBlobs?: boolean | undefined;
}

/** Holds the options of `updateSessionStore`. */
export interface UpdateStoreOptions extends LockOptions {
  /** Has no effect. In OpenClaw, pruning spares this session; nothing is pruned here. */
  readonly activeSessionKey?: string | undefined;
  /** Has no effect. In OpenClaw, it skips pruning; nothing is pruned here. */
  readonly skipMaintenance?: boolean | undefined;
}

/** Limits the retries of a save when other writers change the same entry. */
const maxAttempts = 64;

/**
 * Returns every session of an agent by key. Cached entries are reused while the store reports no change, for at most
 * the cache's lifetime. A store that cannot report changes is read each time. Updates never start from the cache. The
 * caller owns the result.
 */
export async function loadSessionStore(
  context: CompatContext,
  storePath: string,
  { skipCache = false, withBlobs = false }: LoadSessionStoreOptions = {},
): Promise<EntriesByKey> {
  const agentId = agentOf(storePath);
  if (withBlobs) return loadWhole(context, agentId);
  // The mark is taken before the read: a change during the read then gives a different mark.
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

/** Null means that the cache is off, or that the store cannot report changes. */
async function markOf({ store, namespace, cacheTtlMs }: CompatContext, agentId: string): Promise<string | null> {
  return cacheTtlMs > 0 ? ((await store.entriesMark?.({ namespace, agentId })) ?? null) : null;
}

async function loadWhole(context: CompatContext, agentId: string): Promise<EntriesByKey> {
  const entries = emptyEntries();
  for (const state of await readStates(context, agentId)) entries[state.ref.key] = await wholeEntry(context, state);
  return entries;
}

/** Makes the store hold exactly these entries. A session that `entries` does not name is archived, never deleted. */
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
 * Reads, changes and writes in one step under the store's lock. Only the fields that the mutator changed are written,
 * so that a concurrent turn's token counts survive.
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
 * The entries that were read may belong to a write whose flush failed, and then they are not on disk. A store
 * acknowledges no append after such a write, so the success of an empty append proves that they are.
 */
async function settle({ store, random }: CompatContext, states: Iterable<SessionState>): Promise<void> {
  const [first] = states;
  if (first === undefined) return;
  await appendOnce(store, first.ref, [], { idempotencyKey: random.uuid(), isNewKey: true });
}

/**
 * Writes only the changed fields, because other writers may have changed the entry since the read. Returns false when
 * nothing changed.
 */
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

/** A removed field is present with the value `undefined`. */
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
