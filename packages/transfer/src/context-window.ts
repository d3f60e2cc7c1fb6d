import { findRecordProblem, SettingsSearch } from "@throughline/core/internal";
import { type SessionRef, type SessionStore, type StoredRecord } from "@throughline/core";

/**
 * The oldest seq that the context at a head needs, found from the end: messages, and what set the model and thinking level. Null
 * if nothing is left out, or if a look from the end cannot decide. Examples are records out of the order of their parents and a
 * compaction that keeps records after it.
 */
export async function contextWindow(
  store: SessionStore,
  ref: SessionRef,
  headId: string | null,
  signal: { readonly signal?: AbortSignal },
): Promise<number | null> {
  const walk = { wantedId: headId, keptId: null as string | null };
  const settings = new SettingsSearch();
  let fromSeq: number | null = null;
  for await (const { records } of store.read(ref, { ...signal, order: "descending" })) {
    for (const stored of records) {
      const isOnPath = stored.id === walk.wantedId;
      if (isOnPath) {
        walk.wantedId = stored.parentId;
        if (settings.take(stored) && fromSeq !== null) fromSeq = stored.seq;
        if (walk.keptId === null && isBoundary(stored)) walk.keptId = keptFrom(stored);
      }
      if (stored.id === walk.keptId && !isOnPath) return null;
      if (stored.id === walk.keptId) fromSeq = stored.seq;
      if (fromSeq !== null && settings.isDone) return fromSeq;
      if (walk.wantedId === null) return fromSeq;
    }
  }
  return fromSeq;
}

/** Whether what lies before this record may be out of the context. */
export function isBoundary({ type, record, side }: Pick<StoredRecord, "type" | "record" | "side">): boolean {
  return !side && (type === "compaction" || type === "reset") && findRecordProblem(record) === null;
}

function keptFrom({ id, record }: StoredRecord): string {
  const named = record["firstKeptEntryId"];
  return typeof named === "string" ? named : id;
}
