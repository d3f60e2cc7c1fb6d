import { hasErrorCode, type AppendDraft, type FilesFacet, type SessionRef } from "@throughline/core";
import { type FileScope, fileIdsOf, isFields, type ListedFile } from "@throughline/core/internal";
import { addressOf } from "./append-records.ts";
import { placeOf } from "./copy-rows.ts";
import { deleteUnused, idsOf } from "./file-references.ts";
import { contextOf } from "./store-context.ts";
import type { PostgresStore } from "./store-options.ts";

/** Holds the two stores of a moving store. */
interface Stores {
  readonly to: PostgresStore;
  readonly from: PostgresStore;
}

/**
 * Keeps files in two schemas while sessions are moved. Each schema has the files that its own sessions refer to, so that
 * a purge in one of them counts its own references only.
 */
export function createMovingFiles({ to, from }: Stores): FilesFacet {
  return {
    async put(scope, content, options) {
      const stored = await to.files.put(scope, content, options);
      await from.files.put(scope, to.files.get(scope, stored.id));
      return stored;
    },
    async *get(scope, id, options) {
      const store = (await to.files.stat(scope, id)) === null ? from : to;
      yield* store.files.get(scope, id, options);
    },
    stat: async (scope, id) => (await to.files.stat(scope, id)) ?? from.files.stat(scope, id),
    async delete(scope, id) {
      const wasThere = [await to.files.delete(scope, id), await from.files.delete(scope, id)];
      return wasThere.includes(true);
    },
    async *list(scope, options) {
      const pages = [to.files.list(scope, options), from.files.list(scope, options)];
      yield* mergedFiles(pages.map((each) => each[Symbol.asyncIterator]()));
    },
  };
}

/** Merges lists by id. A session that was moved has its references in both, and counts twice until its copy is purged. */
async function* mergedFiles(
  lists: readonly AsyncIterator<readonly ListedFile[]>[],
): AsyncGenerator<readonly ListedFile[]> {
  const left = new Map<AsyncIterator<readonly ListedFile[]>, ListedFile[]>(lists.map((list) => [list, []]));
  for (;;) {
    for (const [list, rows] of left)
      while (rows.length === 0 && left.has(list)) {
        const { value, done } = await list.next();
        if (done === true) left.delete(list);
        else rows.push(...value);
      }
    if (left.size === 0) return;
    // A page ends where the shortest list does, because the next page of that list may have the next id.
    const end = [...left.values()].map((rows) => rows.at(-1)?.id ?? "").toSorted()[0] ?? "";
    const found = [...left.values()].flatMap((rows) => rows.splice(0, rows.findLastIndex(({ id }) => id <= end) + 1));
    const page = [...Map.groupBy(found, ({ id }) => id).values()].map(mergedFile);
    yield page.toSorted((one, two) => (one.id < two.id ? -1 : 1));
  }
}

function mergedFile(files: readonly ListedFile[]): ListedFile {
  const kept = files.find(({ bytes }) => bytes !== null) ?? (files[0] as ListedFile);
  return { ...kept, references: files.reduce((sum, { references }) => sum + references, 0) };
}

/** Copies the files that drafts name to the store of their session, if only the other one has them. */
export async function bringFiles(
  store: PostgresStore,
  { to, from }: Stores,
  scope: FileScope,
  drafts: readonly AppendDraft[],
): Promise<void> {
  const other = store === to ? from : to;
  // The store refuses drafts of another shape with its own error.
  for (const id of Array.isArray(drafts) ? drafts.flatMap((draft) => (isFields(draft) ? fileIdsOf(draft) : [])) : []) {
    if ((await store.files.stat(scope, id)) !== null || (await other.files.stat(scope, id)) === null) continue;
    await store.files.put(scope, other.files.get(scope, id)).catch((error: unknown) => {
      // Another program deleted the file meanwhile.
      if (!hasErrorCode(error, "FILE_NOT_FOUND")) throw error;
    });
  }
}

/** Returns the files that a session refers to in either schema. */
export async function filesOfSession({ to, from }: Stores, ref: SessionRef): Promise<readonly string[]> {
  const address = addressOf(ref);
  if (address === null) return [];
  const found = [to, from].map(async (store) => {
    const { pool, schema, found: opened } = contextOf(store);
    const { layout } = opened;
    return pool.run(
      `SELECT DISTINCT r.file_id FROM ${schema}.sessions t
       JOIN ${schema}.file_references r ON r.session_no = t.session_no${layout.and("r", "t.tenant")}
       WHERE t.namespace = $1 AND t.agent_id = $2 AND t.key = $3 AND t.archive_id = $4${layout.and("t", "$5")}`,
      [...address, ...layout.values(ref)],
      { isRead: true, agent: ref },
    );
  });
  return idsOf((await Promise.all(found)).flat());
}

/** Deletes the files that a purge or a redaction left in a schema where nothing refers to them. */
export async function dropUnusedFiles({ to, from }: Stores, scope: FileScope, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  for (const store of [to, from]) {
    const context = contextOf(store);
    await context.pool.transaction((run) => deleteUnused(placeOf(context, run), scope, ids), scope);
  }
}
