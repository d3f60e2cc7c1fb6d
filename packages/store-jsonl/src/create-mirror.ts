import type { Finding } from "@throughline/core";
import type { AgentFolder } from "./agent-folder.ts";
import { SessionsMirror } from "./sessions-mirror.ts";
import type { StoreContext } from "./store-context.ts";

/** Creates the mirror of an agent. Under a codec none is written, because it would hold the entries in plain. */
export function createMirror(
  { files, codec, random, writesSessionsJson }: StoreContext,
  folder: AgentFolder,
  onFinding: (finding: Finding) => void,
): SessionsMirror {
  const writer = `${random.uint32().toString(36)}${random.uint32().toString(36)}`;
  return new SessionsMirror({ files, folder, isWanted: codec.isCoded ? false : writesSessionsJson, onFinding, writer });
}
