import { derivedFromOf } from "./record-origin.ts";
import { isRecordOfType, type SessionRecord } from "./record.ts";
import type { SessionRef } from "./session-ref.ts";
import type { SessionStore } from "./session-store.ts";
import type { StoredRecord } from "./stored-records.ts";
import { listedIds, repeatsGone, type CopySearch } from "./text-copies.ts";

/** Of which records copies are looked for, and from where on. */
export interface CopiedRecords {
  readonly ids: ReadonlySet<string>;
  /** Of the first of them, and of the record that one of them was derived from. */
  readonly fromSeq: number;
  /** Compactions written after them. */
  readonly compactionIds: readonly string[];
}

/**
 * The records that may repeat the content of the given ones, by the table `textCopies`, and the other records of their
 * units. Records from one source are removed together. A compaction keeps its place, because what comes after it hangs
 * on it.
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
  /** Records before them that they name. */
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
  // A session that was forked or copied in part may not have them.
  if (earlier.size > 0)
    for await (const page of store.read(ref, { beforeSeq: fromSeq, payload: "head" }))
      for (const { id, parentId } of page.records)
        if (earlier.has(id)) {
          parents.set(id, parentId);
          copies.add(id);
        }
  return [...copies].filter((id) => !ids.has(id) && parents.has(id));
}

/** Records that were read from one source, by the id of the first. */
class Units {
  readonly #derived = new Map<string, string[]>();

  take({ id, record }: StoredRecord): void {
    const from = derivedFromOf(record);
    if (from === null) return;
    const members = this.#derived.get(from.id) ?? [];
    members.push(id);
    this.#derived.set(from.id, members);
  }

  /** The first record of the unit, and those derived from it that were met; none for a record that is no derived one. */
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
