import {
  assertKnownOptions,
  loadExisting,
  optionKinds,
  type OptionTable,
  patchEntry,
  portKinds,
  quote,
  refused,
  sha256Hex,
  subagentSessionKey,
  withSystemPorts,
} from "@throughline/core/internal";
import type { Clock, RandomSource, SessionState, SessionStore } from "@throughline/core";
import { hasErrorCode, parseSessionKey, sessionRef, type SessionRef } from "@throughline/core";
import { spawnLineage } from "./spawn-lineage.ts";

/** Limits how deep and how wide sessions may spawn other sessions. */
export interface SpawnLimits {
  /** Limits the generations below a session that no session spawned. @default 3 */
  readonly maxDepth?: number;
  /** Limits the active children of one session. @default 8 */
  readonly maxChildren?: number;
  /** Limits all active descendants of a session that no session spawned. @default 32 */
  readonly maxTotal?: number;
  /** Sets after how many milliseconds without activity a child no longer counts as active. @default an hour */
  readonly idleMs?: number;
}

/** Sets the limits, the entry fields and the occasion of a child. */
export interface SpawnSessionOptions {
  /** Measures the time of the new entry. @default the system's clock */
  readonly clock?: Clock;
  /** Creates the ids of new sessions. @default the system's randomness */
  readonly random?: RandomSource;
  /** Limits how deep children may be spawned, and the number of them. @default `defaultSpawnLimits` */
  readonly limits?: SpawnLimits;
  /** Sets more fields of the child's entry; lineage and identity cannot be set. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /**
   * States the purpose of the child, such as the id of the call that requests it. The same occasion of the same session
   * returns the existing child, archived or not, whatever the limits are.
   * @default each call makes another child
   */
  readonly occasion?: string;
}

const { filledText, integer, number, object, objectOf } = optionKinds;

const spawnLimitsTable: OptionTable<SpawnLimits> = {
  maxDepth: integer({ min: 0 }),
  maxChildren: integer({ min: 0 }),
  maxTotal: integer({ min: 0 }),
  idleMs: number({ min: 0 }),
};

const spawnTable: OptionTable<SpawnSessionOptions> = {
  clock: portKinds.clock,
  random: portKinds.random,
  limits: objectOf(spawnLimitsTable),
  entry: object,
  occasion: filledText,
};

/** A reserved place is kept this long for a child that does not exist yet. */
const reservedMs = 60_000;
const maxAttempts = 64;

/**
 * Creates a session below another session: under its own key, with `spawnedBy` and `spawnDepth`. A parent that may not
 * send has no child that may. The limits hold for any number of concurrent callers. A place is reserved in the entry of
 * the topmost session, by compare-and-swap, before the child is created.
 * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND, SPAWN_REFUSED with `details.reason` `depth`, `children`,
 * `total` or
 *   `circular`
 */
export async function spawnSession(
  store: SessionStore,
  parent: SessionRef,
  options: SpawnSessionOptions = {},
): Promise<SessionState> {
  assertKnownOptions<SpawnSessionOptions>("spawnSession", options, spawnTable);
  const { clock, random, limits = {}, entry = {}, occasion } = withSystemPorts(options);
  const state = await loadExisting(store, parent);
  const idFor = (use: string): string =>
    occasion === undefined ? random.uuid() : derivedUuid([parent.key, state.sessionId, occasion, use]);
  const { namespace, agentId } = parent;
  const ref = sessionRef({ namespace, agentId, key: childSessionKey(parent, idFor("key")) });
  const sessionId = idFor("session");
  const known = occasion === undefined ? null : await spawnedBefore(store, ref, sessionId);
  if (known !== null) return known;
  const { ancestors, isCircular } = await spawnLineage(store, state);
  if (isCircular) throw spawnRefused(parent, "circular", "its own lineage leads back to it");
  const depth = 1 + Math.max(ancestors.length, ...[state, ...ancestors].map((one, above) => statedDepth(one) + above));
  const { maxDepth = 3 } = limits;
  if (depth > maxDepth) throw spawnRefused(parent, "depth", `it would be generation ${depth} of at most ${maxDepth}`);
  const root = ancestors.at(-1) ?? state;
  await takePlace(store, root.ref, { key: ref.key, sessionId, parentKey: parent.key }, { clock, limits });
  const { sessionId: _id, previousSessionIds: _ids, ...given } = entry;
  const child = patchEntry(
    { sessionId },
    {
      ...given,
      ...(state.entry.sendPolicy === undefined ? {} : { sendPolicy: state.entry.sendPolicy }),
      updatedAt: clock.nowMs(),
      spawnedBy: parent.key,
      spawnDepth: depth,
    },
  );
  try {
    return await store.save(ref, child, { ifRevision: null });
  } catch (error) {
    // Another call for the same occasion created the child at the same moment, or a late answer hid that this save
    // succeeded.
    const made = occasion === undefined ? null : await spawnedBefore(store, ref, sessionId);
    if (made === null) throw error;
    return made;
  }
}

/** The child may still hold its key, in any state, or it is in the archive. */
async function spawnedBefore(store: SessionStore, ref: SessionRef, sessionId: string): Promise<SessionState | null> {
  return (await store.load(ref)) ?? (await store.load({ ...ref, archiveId: sessionId }));
}

/** Returns a UUID of version 8 that is always the same for the same parts. */
function derivedUuid(parts: readonly string[]): string {
  const hex = sha256Hex(JSON.stringify(parts));
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 3) | 8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** A removed ancestor must not make its descendants less deep, so the stated depth and the key count too. */
function statedDepth({ entry, ref }: SessionState): number {
  const stated = entry["spawnDepth"];
  const byKey = ref.key.split(":").filter((segment) => segment === "subagent").length;
  return Math.max(typeof stated === "number" && Number.isFinite(stated) ? stated : 0, byKey);
}

export function childSessionKey({ agentId, key }: SessionRef, uuid: string): string {
  const parsed = parseSessionKey(key);
  const isSubagent = parsed.form === "agent" && parsed.rest.kind === "subagent" && parsed.suffix === null;
  return isSubagent ? `${key}:subagent:${uuid}` : subagentSessionKey(agentId, uuid);
}

interface SpawnPlace {
  readonly key: string;
  readonly sessionId: string;
  readonly parentKey: string;
  readonly atMs: number;
}

async function takePlace(
  store: SessionStore,
  root: SessionRef,
  place: Omit<SpawnPlace, "atMs">,
  { clock, limits }: { readonly clock: Clock; readonly limits: SpawnLimits },
): Promise<void> {
  const { maxChildren = 8, maxTotal = 32, idleMs = 3_600_000 } = limits;
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const { entry, revision } = await loadExisting(store, root);
    // A process that ended may have reserved a place for the same child, which is reserved again.
    let places: readonly SpawnPlace[] = placesOf(entry["spawned"]).filter(({ key }) => key !== place.key);
    const children = (): number => places.filter(({ parentKey }) => parentKey === place.parentKey).length;
    const nowMs = clock.nowMs();
    if (places.length >= maxTotal || children() >= maxChildren)
      places = await activeOf(store, root, places, { nowMs, idleMs });
    if (places.length >= maxTotal)
      throw spawnRefused(root, "total", `${places.length} sessions below it are active, of at most ${maxTotal}`);
    if (children() >= maxChildren) {
      const parent = { ...root, key: place.parentKey };
      throw spawnRefused(parent, "children", `${children()} of its children are active, of at most ${maxChildren}`);
    }
    const spawned = [...places, { ...place, atMs: nowMs }];
    try {
      await store.save(root, patchEntry(entry, { spawned }), { ifRevision: revision });
      return;
    } catch (error) {
      if (!hasErrorCode(error, "REVISION_CONFLICT")) throw error;
    }
  }
  throw refused("REVISION_CONFLICT", `The entry of ${quote(root.key)} was changed by others all the time.`, {
    ...root,
  });
}

function placesOf(value: unknown): readonly SpawnPlace[] {
  if (!Array.isArray(value)) return [];
  return (value as readonly Partial<SpawnPlace>[]).filter(
    (place): place is SpawnPlace =>
      typeof place === "object" &&
      place !== null &&
      typeof place.key === "string" &&
      typeof place.sessionId === "string" &&
      typeof place.parentKey === "string" &&
      typeof place.atMs === "number",
  );
}

/** Drops the places of sessions that were archived, are gone or are idle. */
async function activeOf(
  store: SessionStore,
  { namespace, agentId }: SessionRef,
  places: readonly SpawnPlace[],
  { nowMs, idleMs }: { readonly nowMs: number; readonly idleMs: number },
): Promise<readonly SpawnPlace[]> {
  const active: SpawnPlace[] = [];
  for (const place of places) {
    const ref = { namespace, agentId, key: place.key };
    const state = await store.load(ref);
    const isBusy = (state?.head.turn?.leaseUntilMs ?? 0) > nowMs;
    if (state !== null && (isBusy || nowMs - state.updatedAtMs < idleMs)) active.push(place);
    if (state !== null || nowMs - place.atMs >= reservedMs) continue;
    // A child without its key either does not exist yet, or is archived already.
    if ((await store.load({ ...ref, archiveId: place.sessionId })) === null) active.push(place);
  }
  return active;
}

function spawnRefused(ref: SessionRef, reason: "depth" | "children" | "total" | "circular", why: string): Error {
  return refused("SPAWN_REFUSED", `${quote(ref.key)} may spawn no further session: ${why}.`, { ...ref, reason });
}
