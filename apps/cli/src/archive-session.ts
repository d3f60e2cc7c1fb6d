import { updateEntry } from "@throughline/core";
import type { SessionEntry, SessionRef, SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/node";

const field = "archivedAtMs";

/** Notes in the entry that it is being archived: an archive takes no writes, and `prune` asks how long it has been one. */
export async function noteArchiving(store: SessionStore, ref: SessionRef): Promise<void> {
  await updateEntry(store, ref, (entry) => ({ ...entry, [field]: systemClock.nowMs() }));
}

/** When a session was archived; null when nobody noted it, or it is not. */
export function archivedAtMs(entry: SessionEntry): number | null {
  const value = entry[field];
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : null;
}

/** Archives a session and notes when. */
export async function archiveSession(store: SessionStore, ref: SessionRef): Promise<void> {
  await noteArchiving(store, ref);
  await store.remove(ref);
}
