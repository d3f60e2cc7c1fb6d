import { basename } from "node:path";
import { fileFacts } from "../node/source-files.ts";
import { fullLook, type SearchLook } from "../search-look.ts";
import { findSources } from "../find-sources.ts";

/** Counts what lies at some places. */
export interface PlacesSurvey {
  /** Counts the files that are not empty. */
  readonly files: number;
  readonly databases: number;
  readonly sizeBytes: number;
}

/** Counts the files with sessions at some places. None is opened. */
export async function surveyPlaces(paths: readonly string[], storeRoot: string | null): Promise<PlacesSurvey> {
  let [files, databases, sizeBytes] = [0, 0, 0];
  const seen = new Set<string>();
  const look: SearchLook = {
    ...fullLook,
    async isKnown(path, others) {
      if (seen.has(path) || basename(path) === "sessions.json") return true;
      seen.add(path);
      const own = fileFacts(path)?.sizeBytes ?? 0;
      let all = own;
      for await (const other of others?.() ?? []) all += fileFacts(other)?.sizeBytes ?? 0;
      if (own === 0) return true;
      if (/\.(?:db|sqlite|vscdb)$/.test(path)) databases += 1;
      else files += 1;
      sizeBytes += all;
      return true;
    },
  };
  // Every file is known, so the search yields only what it cannot read, which the import reports.
  for await (const _unread of findSources(paths, { from: "auto", storeRoot, look })) continue;
  return { files, databases, sizeBytes };
}
