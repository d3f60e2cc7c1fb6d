import type { ConfigNote } from "./config-note.ts";
import type { SettingSet } from "./setting-set.ts";

/**
 * Settles which store the bucket belongs to. The files of another store look unused in it, and `prune` would delete
 * them. So a bucket is never opened with a store that was named instead of the one it was configured with.
 */
export function settleFiles(settings: SettingSet, isStoreInFile: boolean, notes: ConfigNote[]): void {
  const bucket = settings.get("files.bucket");
  if (bucket.value === null || settings.isSet("files.store")) return;
  const { source } = settings.get("store");
  const isReplaced = source === "environment" && bucket.source === "file" && isStoreInFile;
  if (source !== "flag" && !isReplaced) return settings.fill("files.store", settings.value("store"), "store");
  const { path = null, line = null } = settings.place("files.bucket") ?? {};
  const message =
    "files.bucket belongs to the configured store, and another store is named; its files are not read. Set files.store to the URL of the store with this bucket.";
  notes.push({ kind: "ignored", key: "files.bucket", message, path, line });
}
