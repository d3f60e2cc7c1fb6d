import { isAgentId, refused } from "@throughline/core/internal";
import { agentFolder, agentsFolder, namespacesIn } from "./agent-folder.ts";
import { openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import type { LineCodec } from "./stored-line.ts";

/** The first entry of a log is in its first line, unless that removes a session. */
const headBytes = 65_536;

/**
 * Refuses a store whose entries were written with a codec where the handle has none, and the reverse. A store is encoded as
 * a whole.
 * @param isCoded states how the store was written; null when it has no entry
 * @throws {ThroughlineError} CODEC_FAILED
 */
export function assertSameCoding(isCoded: boolean | null, codec: LineCodec): void {
  if (isCoded === null || isCoded === codec.isCoded) return;
  const [kept, given] = isCoded ? ["a codec", ""] : ["", "a codec"];
  const message = `The store was written ${isCoded ? "with" : "without"} a codec, and opened ${isCoded ? "without" : "with"} one.`;
  throw refused("CODEC_FAILED", message, { kept, given });
}

/**
 * Tests whether a store was written with a codec, by the first entry of the first log that has one: the folder has no
 * other mark. Returns null for a folder without an entry of ours.
 * @throws {ThroughlineError} STORE_IO, STORE_UNREADABLE
 */
export function isCodedFolder(root: string, files: Files): boolean | null {
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
      return isCodedText(readRange(files, handle, 0, headBytes));
    } finally {
      files.close(handle);
    }
  });
}

/** Returns whether the first entry of the text is encoded; null when the text has none. */
export function isCodedText(bytes: Uint8Array): boolean | null {
  // The strings before it have their quotes escaped, so the first name of this form is the entry's.
  const found = /"entry(Enc)?":/.exec(Buffer.from(bytes).toString());
  return found === null ? null : found[1] !== undefined;
}
