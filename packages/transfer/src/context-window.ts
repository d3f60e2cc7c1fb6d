import { findRecordProblem } from "@throughline/core/internal";
import { type SessionRef, type SessionStore, type StoredRecord } from "@throughline/core";

/**
 * The oldest seq that the context at a head needs, found from the end: what is read is what is needed. Null if nothing
 * is left out, or if a look from the end cannot decide. Examples are records out of the order of their parents, a
 * compaction that keeps records after it, and a window that names no model.
 */
export async function contextWindow(
  store: SessionStore,
  ref: SessionRef,
  headId: string | null,
  signal: { readonly signal?: AbortSignal },
): Promise<number | null> {
  const walk = { wantedId: headId, keptId: null as string | null, hasModel: false };
  for await (const { records } of store.read(ref, { ...signal, order: "descending" })) {
    for (const stored of records) {
      const isOnPath = stored.id === walk.wantedId;
      if (isOnPath) {
        walk.wantedId = stored.parentId;
        walk.hasModel ||= namesModel(stored);
        if (walk.keptId === null && isBoundary(stored)) walk.keptId = keptFrom(stored);
      }
      if (stored.id === walk.keptId) return isOnPath && walk.hasModel ? stored.seq : null;
      if (walk.wantedId === null) return null;
    }
  }
  return null;
}

/** Whether what lies before this record may be out of the context. */
export function isBoundary({ type, record, side }: Pick<StoredRecord, "type" | "record" | "side">): boolean {
  return !side && (type === "compaction" || type === "reset") && findRecordProblem(record) === null;
}

function keptFrom({ id, record }: StoredRecord): string {
  const named = record["firstKeptEntryId"];
  return typeof named === "string" ? named : id;
}

function namesModel({ type, record }: StoredRecord): boolean {
  const message = type === "message" ? (record["message"] as { readonly role?: unknown } | null) : null;
  return type === "model_change" || message?.role === "assistant";
}
