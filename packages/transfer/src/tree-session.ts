import { createFinding } from "@throughline/core/internal";
import { hasErrorCode } from "@throughline/core";
import type { ForeignFormat } from "@throughline/foreign-formats";
import type { FormatTree, TreeFiles, TreePlace } from "@throughline/foreign-formats/internal";
import { createLineSource, lineBytes } from "./line-source.ts";
import { readIfThere } from "./companion-files.ts";
import { eachSourceName } from "./node/source-files.ts";
import { transcriptSource, usableSessionId, type TranscriptSource } from "./transcript-source.ts";

export const treeFiles: TreeFiles = {
  names: async (folder) => {
    const names: string[] = [];
    try {
      await eachSourceName(folder, ({ name, isDirectory }) => {
        if (!isDirectory) names.push(name);
      });
    } catch (error) {
      // A session without messages has no folder for them.
      if (!hasErrorCode(error, "FILE_NOT_FOUND")) throw error;
    }
    return names.toSorted();
  },
  text: readIfThere,
};

/** @throws {ThroughlineError} FILE_UNREADABLE */
export async function treeSource(format: ForeignFormat, tree: FormatTree, place: TreePlace): Promise<TranscriptSource> {
  const { path, sessionId } = place;
  const { entry, spawnedBy, lines, unread = [] } = await tree.session(treeFiles, place);
  return transcriptSource({
    format: format.name,
    foreign: format,
    path,
    sizeBytes: null,
    sessionId: usableSessionId(sessionId, path),
    statesId: true,
    entry,
    ...(spawnedBy === null ? {} : { spawnedBy }),
    findings: unread.map((message) => createFinding("SOURCE_UNREAD", message, { path })),
    open: async () => createLineSource(path, await lineBytes(lines()), lines),
  });
}
