import { isAgentId } from "@throughline/core/internal";
import { agentFolder, agentsFolder, namespacesIn } from "./agent-folder.ts";
import { openIfThere, readRange, withFileErrors } from "./file-work.ts";
import { type Files, nodeFiles } from "./files.ts";

/** The first entry of a log is in its first line, unless that removes a session. */
const headBytes = 65_536;

/**
 * Tests whether a store was written with a codec, by the first entry of the first log that has one: the folder has no
 * other mark. Returns null for a folder without an entry of ours.
 * @throws {ThroughlineError} STORE_IO, STORE_UNREADABLE
 */
export function isCodedFolder(root: string, files: Files = nodeFiles): boolean | null {
  for (const namespace of namespacesIn({ root, files })) {
    const folder = agentsFolder(root, namespace);
    const names = withFileErrors(folder, () => (files.facts(folder)?.kind === "folder" ? files.names(folder) : []));
    for (const agentId of names.filter((name) => isAgentId(name))) {
      const isCoded = isCodedLog(files, agentFolder(root, { namespace, agentId }).entriesLog);
      if (isCoded !== null) return isCoded;
    }
  }
  return null;
}

function isCodedLog(files: Files, path: string): boolean | null {
  return withFileErrors(path, () => {
    const handle = openIfThere(files, path);
    if (handle === null) return null;
    try {
      const head = Buffer.from(readRange(files, handle, 0, headBytes)).toString();
      // The strings before it have their quotes escaped, so the first name of this form is the entry's.
      const found = /"entry(Enc)?":/.exec(head);
      return found === null ? null : found[1] !== undefined;
    } finally {
      files.close(handle);
    }
  });
}
