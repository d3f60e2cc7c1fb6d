import { derivedFromOf } from "./record-origin.ts";
import { isRecordOfType, type SessionRecord } from "./record.ts";
import type { SessionRef } from "./session-ref.ts";
import type { SessionStore } from "./session-store.ts";
import type { StoredRecord } from "./stored-records.ts";
import { listedIds, repeatsGone, type CopySearch } from "./text-copies.ts";

export interface CopiedRecords {
  readonly ids: ReadonlySet<string>;
  /** The search starts at the first of the records, or at the record that one of them was derived from. */
  readonly fromSeq: number;
  /** These compactions were written after the records, so they may repeat their content. */
  readonly compactionIds: readonly string[];
}

/**
 * Returns the records that may repeat the content of the given records, by the table `textCopies`. Records from one
 * source are removed together, so the other records of the same source are returned too. A compaction keeps its place,
 * because later records depend on its position.
 */
export async function findCopies(
  store: SessionStore,
  ref: SessionRef,
  { ids, fromSeq, compactionIds }: CopiedRecords,
): Promise<readonly string[]> {
  const parents = new Map<string, string | null>();
  const gone = new Set(ids);
  const callIds = new Set<string>();
  const search: CopySearch = { gone, compactionIds: new Set(compactionIds), callIds, parents };
  const units = new Units();
  const copies = new Set<string>();
  /** A record may name copies before the start of the search, which have not been read. */
  const earlier = new Set<string>();
  for await (const page of store.read(ref, { afterSeq: fromSeq - 1 })) {
    for (const stored of page.records) {
      const { id, parentId, record } = stored;
      parents.set(id, parentId);
      units.take(stored);
      if (ids.has(id)) for (const member of units.membersOf(stored)) gone.add(member);
      if (repeatsGone(stored, search)) copies.add(id);
      if (!ids.has(id) && !copies.has(id)) continue;
      for (const callId of callsIn(record)) callIds.add(callId);
      for (const copyId of listedIds(record["copiedIn"])) if (!parents.has(copyId)) earlier.add(copyId);
    }
  }
  for (const id of gone) copies.add(id);
  // A session that was forked or copied in part may lack these records, so each id is checked.
  if (earlier.size > 0)
    for await (const page of store.read(ref, { beforeSeq: fromSeq, payload: "head" }))
      for (const { id, parentId } of page.records)
        if (earlier.has(id)) {
          parents.set(id, parentId);
          copies.add(id);
        }
  return [...copies].filter((id) => !ids.has(id) && parents.has(id));
}

/** Groups the records that were read from one source by the id of the first record. */
class Units {
  readonly #derived = new Map<string, string[]>();

  take({ id, record }: StoredRecord): void {
    const from = derivedFromOf(record);
    if (from === null) return;
    const members = this.#derived.get(from.id) ?? [];
    members.push(id);
    this.#derived.set(from.id, members);
  }

  /**
   * Returns the first record of the source and its derived records that were read so far. The list is empty for a
   * record that is not derived.
   */
  membersOf({ record }: StoredRecord): readonly string[] {
    const from = derivedFromOf(record);
    return from === null ? [] : [from.id, ...(this.#derived.get(from.id) ?? [])];
  }
}

function callsIn(record: SessionRecord): readonly string[] {
  const message = isRecordOfType(record, "message") ? (record.message as { readonly content?: unknown } | null) : null;
  const content: readonly unknown[] = Array.isArray(message?.content) ? message.content : [];
  return content.flatMap((block) => {
    const { type, id } = (block ?? {}) as { readonly type?: unknown; readonly id?: unknown };
    return type === "toolCall" && typeof id === "string" ? [id] : [];
  });
}
