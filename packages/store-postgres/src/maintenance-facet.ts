import type { FilesFacet, MaintenanceFacet, SearchFacet } from "@throughline/core";
import { assertPurges, assertStoreOptions, createFinding } from "@throughline/core/internal";
import { backupStore } from "./backup-store.ts";
import { addPurges, readPurges } from "./purged-sources.ts";
import type { StoreContext } from "./store-context.ts";
import { verifyFiles } from "./verify-files.ts";
import { verifyStore } from "./verify-store.ts";

/**
 * Creates the checks and repairs that only the store can do. `repair` rebuilds the search index. A damaged record
 * stays, because only a backup has another copy. Pages, replicas and the server's files need the tools of PostgreSQL,
 * such as `pg_amcheck` and `pg_basebackup`.
 */
export function createMaintenance(
  context: StoreContext,
  begin: (signal?: AbortSignal) => Promise<void>,
  { search, files }: { readonly search: SearchFacet | undefined; readonly files: FilesFacet },
): MaintenanceFacet {
  return {
    async *verify(options = {}) {
      assertStoreOptions("verify", options);
      await begin(options.signal);
      yield* verifyStore(context, options);
      yield* verifyFiles(context, files, options);
    },
    async *repair(options = {}) {
      assertStoreOptions("repair", options);
      const { signal } = options;
      await begin(signal);
      const asked = { full: true, ...(signal === undefined ? {} : { signal }) };
      yield* verifyStore(context, asked);
      yield* verifyFiles(context, files, asked);
      if (search?.rebuild === undefined) return;
      await search.rebuild(signal === undefined ? {} : { signal });
      yield createFinding("INDEX_REBUILT", "The search index was made again from the records.", {
        path: context.pool.place,
        repaired: true,
      });
    },
    async backup(path, options = {}) {
      assertStoreOptions("backup", options);
      const { signal } = options;
      await begin(signal);
      return backupStore(context, path, signal);
    },
    async *purges(options = {}) {
      assertStoreOptions("purges", options);
      await begin(options.signal);
      for await (const marks of readPurges(context, { ...options, namespace: options.namespace ?? "" }))
        yield marks.map(({ namespace: _asked, ...mark }) => mark);
    },
    async addPurges(namespace, purges) {
      assertPurges(namespace, purges);
      await begin();
      if (purges.length > 0)
        await addPurges(
          context,
          purges.map((mark) => ({ ...mark, namespace })),
        );
    },
  };
}
