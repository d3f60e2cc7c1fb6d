import { lstatSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isAgentId } from "@throughline/core/internal";
import { foreignFormats } from "@throughline/foreign-formats";
import type { FormatPlace } from "@throughline/foreign-formats/internal";
import { joinPath } from "@throughline/openclaw-format/internal";

/** Describes a location with sessions of another program, from file metadata alone. */
export interface ForeignPlace {
  /** Names a folder or a database that `importPaths` accepts. */
  readonly path: string;
  /** Counts files that are not empty. */
  readonly files: number;
  readonly sizeBytes: number;
  /** Holds the time of the newest change, so that a later scan can detect that nothing changed. */
  readonly newestMs: number;
}

/** OpenClaw and GoClaw share this state directory: it holds the agents' sessions and GoClaw's databases. */
export function openclawState(userHome: string): string {
  return join(userHome, ".openclaw");
}

/**
 * Lists the session locations in a directory: every agent and the databases beside them, or one agent's database and
 * transcripts. Since 2026.8 OpenClaw keeps an agent's sessions in a database. `sessions` then holds the sessions that
 * the database lacks, so the database comes first.
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
    // The path is below a file or not readable. The user did not name it, so this is no error.
    return false;
  }
}

function foldersIn(path: string): readonly string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
      .toSorted();
  } catch {
    // The folder is not readable. The user did not name it, so this is no error.
    return [];
  }
}

/** Finds the paths that hold sessions of another program. Missing and unreadable paths are left out. */
export function foreignPlaces(paths: readonly string[]): readonly ForeignPlace[] {
  return paths.flatMap((path) => {
    try {
      const place = statSync(path).isDirectory() ? folder(path) : file(path);
      return place.files === 0 ? [] : [place];
    } catch {
      // The path is missing or not readable. The user did not name it, so this is no error.
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

/** The size includes the write-ahead log, because it holds the last writes of a running program. */
function file(path: string): ForeignPlace {
  const facts = [path, `${path}-wal`].flatMap((each) => statSync(each, { throwIfNoEntry: false }) ?? []);
  const sizeBytes = facts.reduce((sum, { size }) => sum + size, 0);
  return { path, files: sizeBytes > 0 ? 1 : 0, sizeBytes, newestMs: Math.max(...facts.map(({ mtimeMs }) => mtimeMs)) };
}

/** Adds the program's name to a location. */
export interface ProgramTranscripts extends ForeignPlace {
  readonly program: string;
}

export const piPlace: FormatPlace = {
  variables: ["PI_CODING_AGENT_DIR"],
  home: ".pi/agent",
  files: [["sessions", /./, /\.jsonl$/]],
};

/**
 * Finds the sessions of other programs in their default locations. Only names that sessions have are examined, and a
 * location that `isWanted` rejects is not read.
 */
export function programTranscripts(
  user: UserPlaces,
  isWanted: (path: string) => boolean,
): readonly ProgramTranscripts[] {
  const programs = [
    ...[...foreignFormats.values()].map(({ program, places }) => ({ program, places })),
    { program: "pi", places: [piPlace] },
  ];
  return programs.flatMap(({ program, places }) =>
    places.flatMap((place) => placesOf(place, user).flatMap((found) => counted(program, found, isWanted))),
  );
}

interface PlacedSessions {
  readonly path: string;
  readonly files: readonly (readonly (string | RegExp)[])[];
}

/** Returns each folder that has a name of its own, so that no other folder of the user's home counts. */
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
    // The folder is missing or not readable. The user did not name it, so this is no error.
    return [];
  }
}

interface UserPlaces {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly userHome: string;
}

export function rootOf(
  { variables, home }: Pick<FormatPlace, "variables" | "home">,
  { environment, userHome }: UserPlaces,
): string {
  for (const variable of variables) {
    const { name, below } = typeof variable === "string" ? { name: variable, below: "" } : variable;
    const value = environment[name];
    if (value === undefined || value === "") continue;
    const folder = value === "~" || value.startsWith("~/") ? joinPath(userHome, value.slice(1)) : value;
    return below === "" ? folder : joinPath(folder, below);
  }
  return joinPath(userHome, home);
}
