export const wireName = "wire.jsonl";

interface SessionPlace {
  readonly sessionId: string;
  readonly spawnedBy: string | null;
  readonly isSubAgent: boolean;
  /** Names the folder of all sessions of a working folder, by a hash. */
  readonly hash: string;
  readonly folder: string;
  /** The program lists its working folders in this file. */
  readonly index: string;
}

/** The program states the ids of a session and of its working folder only in the path. Null means another path. */
export function sessionPlace(path: string): SessionPlace | null {
  const parts = path.split(/[/\\]/);
  const folders = parts.slice(0, -1);
  const isSubAgent = folders.at(-2) === "subagents";
  const session = isSubAgent ? folders.slice(0, -2) : folders;
  const [sessions, hash = "", id = ""] = session.slice(-3);
  if (parts.at(-1) !== wireName || sessions !== "sessions" || id === "") return null;
  return {
    sessionId: isSubAgent ? (folders.at(-1) ?? "") : id,
    spawnedBy: isSubAgent ? id : null,
    isSubAgent,
    hash,
    folder: folders.join("/"),
    index: [...session.slice(0, -3), "kimi.json"].join("/"),
  };
}
