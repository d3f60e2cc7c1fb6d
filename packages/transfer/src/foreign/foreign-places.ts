import { readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isAgentId } from "@throughline/core/internal";
import { foreignFormats } from "@throughline/foreign-formats";
import type { FormatPlace } from "@throughline/foreign-formats/internal";
import { joinPath } from "@throughline/openclaw-format/internal";

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

/** The variable names the folder of the sessions themselves. */
const piSessionsPlace: FormatPlace = { variables: ["PI_CODING_AGENT_SESSION_DIR"], home: null, files: [] };

export const piPlace: HomePlace = {
  variables: ["PI_CODING_AGENT_DIR"],
  home: ".pi/agent",
  files: [["sessions", /./, /\.jsonl$/]],
};

type HomePlace = FormatPlace & { readonly home: string };

export const openclawPlace: HomePlace = {
  variables: ["OPENCLAW_STATE_DIR"],
  home: ".openclaw",
  files: [],
};

/** Names a place where a program keeps its sessions. */
export interface ProgramPlace {
  /** Names the format of the sessions, such as `claude-code`. */
  readonly format: string;
  readonly program: string;
  /** Names a folder or a file that `importPaths` accepts. */
  readonly path: string;
}

/**
 * Lists the places where programs keep their sessions, those that exist now.
 *
 * @param formats names of formats whose programs a person named; null for every program whose folder holds nothing but
 *   its own files
 */
export function programPlaces(user: UserPlaces, formats: ReadonlySet<string> | null): readonly ProgramPlace[] {
  const isWanted = (format: string): boolean => formats === null || formats.has(format);
  const places = [...foreignFormats.values()].flatMap(({ name, program, places: own, askedPlaces = [] }) => {
    const read = formats?.has(name) === true ? [...own, ...askedPlaces] : own;
    return isWanted(name) ? read.map((place) => ({ format: name as string, program, place })) : [];
  });
  const others = [
    { format: "pi", program: "pi", place: piPlace },
    { format: "pi", program: "pi", place: piSessionsPlace },
    { format: "openclaw", program: "OpenClaw", place: openclawPlace },
  ];
  const found = [...places, ...others.filter(({ format }) => isWanted(format))].flatMap(({ format, program, place }) =>
    pathsOf(place, user).map((path) => ({ format, program, path })),
  );
  // Two rows of a program may name one folder.
  return [...new Map(found.map((each) => [each.path, each])).values()].filter(({ path }) => isThere(path));
}

/** Returns each folder that has a name of its own, so that no other folder of the user's home is listed. */
function pathsOf(place: FormatPlace, user: UserPlaces): readonly string[] {
  const root = rootOf(place, user);
  if (root === null) return [];
  if (place.files.length === 0) return [root];
  return place.files.map(([first]) => (first === undefined || typeof first !== "string" ? root : join(root, first)));
}

interface UserPlaces {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly userHome: string;
}

/** Returns the folder that a variable states, else the one in the user's home; null when there is neither. */
export function rootOf<Home extends string | null>(
  { variables, home }: { readonly variables: FormatPlace["variables"]; readonly home: Home },
  { environment, userHome }: UserPlaces,
): string | (null extends Home ? null : never) {
  for (const variable of variables) {
    const { name, below } = typeof variable === "string" ? { name: variable, below: "" } : variable;
    const value = environment[name];
    if (value === undefined || value === "") continue;
    const folder = value === "~" || value.startsWith("~/") ? joinPath(userHome, value.slice(1)) : value;
    return below === "" ? folder : joinPath(folder, below);
  }
  return (home === null ? null : joinPath(userHome, home)) as string | (null extends Home ? null : never);
}
