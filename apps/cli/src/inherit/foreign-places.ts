import { lstatSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isAgentId } from "@throughline/core/keys";

/** Sessions of another program, as the file system shows them; nothing was read. */
export interface ForeignPlace {
  /** What `import` takes. */
  readonly path: string;
  readonly files: number;
  readonly sizeBytes: number;
  /** Of the newest change, so that what was looked at is not looked at again. */
  readonly newestMs: number;
}

/** The directory of OpenClaw and GoClaw below the user's: agents with their sessions, and GoClaw's databases. */
export function openclawState(userHome: string): string {
  return join(userHome, ".openclaw");
}

/**
 * The places that a directory somebody named stands for: of a state directory every agent and the databases beside them,
 * of an agent its database and its transcripts. OpenClaw keeps an agent's sessions in a database since 2026.8; what lies
 * in `sessions` then is what it has not taken over, which is why the database comes first and belongs to that folder.
 */
export function placesAt(path: string): readonly string[] {
  const agents = basename(path) === "agents" ? path : join(path, "agents");
  if (isFolder(agents))
    return [
      ...foldersIn(agents).flatMap((name) => (isAgentId(name) ? agentPlaces(join(agents, name)) : [])),
      ...(agents === path ? [] : goclawDatabases(path)),
    ];
  if (basename(path) === "sessions" && basename(dirname(dirname(path))) === "agents") return agentPlaces(dirname(path));
  if (basename(dirname(path)) === "agents") return agentPlaces(path);
  const databases = goclawDatabases(path).filter((each) => isThere(each));
  return databases.length > 0 ? databases : [path];
}

function agentPlaces(agent: string): readonly string[] {
  return [join(agent, "agent", "openclaw-agent.sqlite"), join(agent, "sessions")];
}

function goclawDatabases(state: string): readonly string[] {
  return [join(state, "sessions.db"), join(state, "goclaw", "sessions.db")];
}

function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    // Below something that is no folder, or somebody else's: nobody asked for it.
    return false;
  }
}

function foldersIn(path: string): readonly string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
      .toSorted();
  } catch {
    // Somebody else's: nobody asked for it.
    return [];
  }
}

/** The places that hold sessions; those that are not there, or cannot be looked into, are none. */
export function foreignPlaces(paths: readonly string[]): readonly ForeignPlace[] {
  return paths.flatMap((path) => {
    try {
      const place = statSync(path).isDirectory() ? folder(path) : file(path);
      return place.files === 0 ? [] : [place];
    } catch {
      // Not there, or somebody else's: nobody asked for it, so there is nothing to say.
      return [];
    }
  });
}

function folder(path: string): ForeignPlace {
  const names = readdirSync(path).filter((name) => /\.jsonl(\.|$)/.test(name));
  let [sizeBytes, newestMs, files] = [0, 0, 0];
  for (const name of names) {
    const { size, mtimeMs } = lstatSync(join(path, name));
    sizeBytes += size;
    newestMs = Math.max(newestMs, mtimeMs);
    if (size > 0) files += 1;
  }
  return { path, files, sizeBytes, newestMs };
}

/** What a program that runs has said last stands in the log beside its database. */
function file(path: string): ForeignPlace {
  const facts = [path, `${path}-wal`].flatMap((each) => statSync(each, { throwIfNoEntry: false }) ?? []);
  const sizeBytes = facts.reduce((sum, { size }) => sum + size, 0);
  return { path, files: sizeBytes > 0 ? 1 : 0, sizeBytes, newestMs: Math.max(...facts.map(({ mtimeMs }) => mtimeMs)) };
}
