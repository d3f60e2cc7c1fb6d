import { refused } from "./refused.ts";
import { quote } from "./session-id.ts";
import type { SessionStore } from "./session-store.ts";
import type { FilesFacet } from "./store-facets.ts";

/** Returns the files of a store. @throws {ThroughlineError} CAPABILITY_UNSUPPORTED for a store that keeps no files */
export function storeFiles({ files, capabilities }: Pick<SessionStore, "files" | "capabilities">): FilesFacet {
  if (files !== undefined) return files;
  throw refused("CAPABILITY_UNSUPPORTED", `The store ${quote(capabilities.name)} keeps no files.`, { needs: "files" });
}
