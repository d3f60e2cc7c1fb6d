import type { SessionRef } from "./session-ref.ts";
import type { SessionStore, StoredRecord } from "./session-store.ts";
import { withheldSummary } from "./summary-parts.ts";
import { throughlineKind } from "./throughline-record.ts";

/** Of which records copies are looked for, and from where on. */
export interface CopiedRecords {
  readonly ids: ReadonlySet<string>;
  readonly fromSeq: number;
  /** Compactions written after them. */
  readonly compactionIds: readonly string[];
}

/**
 * The records that may repeat what the given ones say and that nothing needs in their place: checkpoints, summaries of
 * branches that led past one of them, better texts of summaries, messages that a call put in the place of others, and
 * edits of the records themselves. Compactions are not among them: what comes after one hangs on it.
 */
export async function findCopies(
  store: SessionStore,
  ref: SessionRef,
  { ids, fromSeq, compactionIds }: CopiedRecords,
): Promise<readonly string[]> {
  const edited = new Set([...ids, ...compactionIds]);
  const parents = new Map<string, string | null>();
  const copies: string[] = [];
  for await (const page of store.read(ref, { afterSeq: fromSeq - 1 })) {
    for (const stored of page.records) {
      const { id, parentId } = stored;
      parents.set(id, parentId);
      if (!ids.has(id) && (repeats(stored, edited) || summarizes(stored, ids, parents))) copies.push(id);
    }
  }
  return copies;
}

function repeats({ type, record }: StoredRecord, edited: ReadonlySet<string>): boolean {
  if (type === "checkpoint") return true;
  if (type === "context_edit") return isEditOf(record, edited);
  const data = (record["data"] ?? {}) as Readonly<Record<string, unknown>>;
  switch (throughlineKind(record)) {
    case "edit":
      return isEditOf(data, edited);
    case "note":
      return data["kind"] === "summary-superseded" && data["summary"] !== withheldSummary;
    case "call":
      return data["splice"] !== undefined && data["splice"] !== null;
    default:
      return false;
  }
}

function isEditOf(edit: Readonly<Record<string, unknown>>, edited: ReadonlySet<string>): boolean {
  const { targetId, replacement } = edit;
  return typeof targetId === "string" && edited.has(targetId) && replacement !== null;
}

/** Whoever wrote it had the way to the branch it is about before them, and the way to the place where it stands. */
function summarizes(
  { type, record, parentId }: StoredRecord,
  ids: ReadonlySet<string>,
  parents: ReadonlyMap<string, string | null>,
): boolean {
  if (type !== "branch_summary") return false;
  const { fromId } = record as { readonly fromId?: unknown };
  return isBehind(typeof fromId === "string" ? fromId : null, ids, parents) || isBehind(parentId, ids, parents);
}

function isBehind(
  lastId: string | null,
  ids: ReadonlySet<string>,
  parents: ReadonlyMap<string, string | null>,
): boolean {
  const seen = new Set<string>();
  for (let id = lastId; id !== null && !seen.has(id); id = parents.get(id) ?? null) {
    if (ids.has(id)) return true;
    seen.add(id);
  }
  return false;
}
