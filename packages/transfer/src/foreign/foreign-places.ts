import { lstatSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isAgentId } from "@throughline/core/internal";
import { foreignFormats } from "@throughline/foreign-formats";
import { type FormatPlace } from "@throughline/foreign-formats/internal";
import { rootOf, type UserPlaces } from "../program-places.ts";

/** A place with sessions of another program, by what the file system shows; no file was read. */
export interface ForeignPlace {
  /** A folder or a database that `importPaths` takes. */
  readonly path: string;
  /** Files that are not empty. */
  readonly files: number;
  readonly sizeBytes: number;
  /** The time of the newest change, by which a later look finds that nothing changed. */
  readonly newestMs: number;
}

/** The state directory of OpenClaw and GoClaw in the user's: agents with their sessions, and GoClaw's databases. */
export function openclawState(userHome: string): string {
  return join(userHome, ".openclaw");
}

/**
 * Lists the places in a directory: for a state directory, every agent and the databases beside them; for an agent, its
 * database and its transcripts. OpenClaw keeps an agent's sessions in a database since 2026.8; `sessions` then holds
 * what the database lacks, so the database comes first.
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
    // Below a file, or closed to this user: nobody asked for it.
    return false;
  }
}

function foldersIn(path: string): readonly string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
      .toSorted();
  } catch {
    // Closed to this user: nobody asked for it.
    return [];
  }
}

/** Finds which of the paths hold sessions of another program. Paths that do not exist or cannot be read are left out. */
export function foreignPlaces(paths: readonly string[]): readonly ForeignPlace[] {
  return paths.flatMap((path) => {
    try {
      const place = statSync(path).isDirectory() ? folder(path) : file(path);
      return place.files === 0 ? [] : [place];
    } catch {
      // Missing, or closed to this user: nobody asked for it, so there is nothing to report.
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

/** The last writes of a running program are in the log beside its database. */
function file(path: string): ForeignPlace {
  const facts = [path, `${path}-wal`].flatMap((each) => statSync(each, { throwIfNoEntry: false }) ?? []);
  const sizeBytes = facts.reduce((sum, { size }) => sum + size, 0);
  return { path, files: sizeBytes > 0 ? 1 : 0, sizeBytes, newestMs: Math.max(...facts.map(({ mtimeMs }) => mtimeMs)) };
}

/** A place with sessions of a program, by what the file system shows; no file was read. */
export interface ProgramTranscripts extends ForeignPlace {
  /** As messages name it. */
  readonly program: string;
}

const pi: FormatPlace = {
  variables: ["PI_CODING_AGENT_DIR"],
  home: ".pi/agent",
  files: [["sessions", /./, /\.jsonl$/]],
};

/**
 * Finds the sessions of other programs in the places where they keep them by default. Only names that sessions have are looked
 * at. A place that `isWanted` refuses is not looked into.
 */
export function programTranscripts(
  user: UserPlaces,
  isWanted: (path: string) => boolean,
): readonly ProgramTranscripts[] {
  const programs = [
    ...[...foreignFormats.values()].map(({ program, places }) => ({ program, places })),
    { program: "pi", places: [pi] },
  ];
  return programs.flatMap(({ program, places }) =>
    places.flatMap((place) => placesOf(place, user).flatMap((found) => counted(program, found, isWanted))),
  );
}

/** A folder, and the paths of sessions below it. */
interface PlacedSessions {
  readonly path: string;
  readonly files: readonly (readonly (string | RegExp)[])[];
}

/** Each folder that has a name of its own, so that nothing else of a user's home belongs to it. */
function placesOf(place: FormatPlace, user: UserPlaces): readonly PlacedSessions[] {
  const root = rootOf(place, user);
  const byFolder = Map.groupBy(place.files, ([folder]) => String(folder));
  return [...byFolder].map(([folder, files]) => ({
    path: join(root, folder),
    files: files.map((parts) => parts.slice(1)),
  }));
}

function counted(
  program: string,
  { path, files: patterns }: PlacedSessions,
  isWanted: (path: string) => boolean,
): readonly ProgramTranscripts[] {
  if (!isWanted(path)) return [];
  let [files, sizeBytes, newestMs] = [0, 0, 0];
  for (const parts of patterns) {
    for (const file of filesBelow(path, parts)) {
      const facts = lstatSync(file, { throwIfNoEntry: false });
      if (facts === undefined || !facts.isFile() || facts.size === 0) continue;
      files += 1;
      sizeBytes += facts.size;
      newestMs = Math.max(newestMs, facts.mtimeMs);
    }
  }
  return files === 0 ? [] : [{ program, path, files, sizeBytes, newestMs }];
}

function* filesBelow(folder: string, [part, ...others]: readonly (string | RegExp)[]): Generator<string> {
  if (part === undefined) return;
  for (const { name, isDirectory } of namesIn(folder)) {
    const isLast = others.length === 0;
    if (isDirectory === isLast || !(typeof part === "string" ? part === name : part.test(name))) continue;
    const path = join(folder, name);
    if (isLast) yield path;
    else yield* filesBelow(path, others);
  }
}

function namesIn(folder: string): readonly { readonly name: string; readonly isDirectory: boolean }[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).map((entry) => ({
      name: entry.name,
      isDirectory: entry.isDirectory(),
    }));
  } catch {
    // Not there, or closed to this user: nobody asked for it.
    return [];
  }
}
