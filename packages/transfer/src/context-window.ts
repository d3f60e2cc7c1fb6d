import { findRecordProblem, SettingsSearch } from "@throughline/core/internal";
import type { SessionRef, SessionStore, StoredRecord } from "@throughline/core";

/**
 * Finds the oldest seq that the context at a head needs, reading from the end. It covers the messages and the records
 * that set model and thinking level. Returns null if nothing is left out, or if reading from the end cannot decide.
 * That happens when records are out of the order of their parents, or a compaction keeps records after it.
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

export function isBoundary({ type, record, side }: Pick<StoredRecord, "type" | "record" | "side">): boolean {
  return !side && (type === "compaction" || type === "reset") && findRecordProblem(record) === null;
}

function keptFrom({ id, record }: StoredRecord): string {
  const named = record["firstKeptEntryId"];
  return typeof named === "string" ? named : id;
}
