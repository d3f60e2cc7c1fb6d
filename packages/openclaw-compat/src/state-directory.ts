import { homedir } from "node:os";
import { dirname } from "node:path";
import process from "node:process";
import { ThroughlineError } from "@throughline/core";
import { quote, shellWord, systemClock, systemRandom } from "@throughline/core/internal";
import { agentOfSessionsDir, joinPath } from "@throughline/openclaw-format/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import type { LoadedCache } from "./compat-context.ts";
import { isThere } from "./node/is-there.ts";
import { cacheTtlFrom, createOpenclawSessions, type OpenclawSessions } from "./openclaw-sessions.ts";

export function defaultStateDir(): string {
  const stated = process.env["THROUGHLINE_HOME"]?.trim() ?? "";
  return stated === "" ? joinPath(homedir(), ".throughline") : stated;
}

/**
 * Returns the directory that holds `agents`. OpenClaw's layout of an index states it. A configured path with another
 * layout gets a directory beside the file that OpenClaw would write.
 * @throws {ThroughlineError} INPUT_INVALID for a path without a folder, or when the file of another program is there
 */
export function stateDirOf(storePath: string): string {
  const parts = storePath.split("/");
  const [agents, agentId, sessions, file] = parts.slice(-4);
  const isPlaced = agents === "agents" && agentOfSessionsDir(storePath) === agentId && sessions === "sessions";
  if (parts.length > 4 && isPlaced && file === "sessions.json") return parts.slice(0, -4).join("/") || "/";
  if (parts.length > 2 && storePath.startsWith("/") && storePath.endsWith(".json")) return ownDirectory(storePath);
  throw new ThroughlineError("INPUT_INVALID", `${quote(storePath)} is not the index of an agent's sessions.`, {
    outcome: "not-applied",
    details: { path: storePath },
    remedy:
      "Pass DIRECTORY/agents/AGENT/sessions/sessions.json, an absolute path of another .json file, or what resolveDefaultSessionStorePath gives.",
  });
}

/**
 * Refuses a path where OpenClaw's file exists. Its entries would be missing here, and a program would create new
 * sessions for their keys.
 */
function ownDirectory(storePath: string): string {
  const directory = storePath.slice(0, -".json".length);
  if (!isThere(storePath)) return directory;
  throw new ThroughlineError("INPUT_INVALID", `${quote(storePath)} is a file of OpenClaw, in a folder of its own.`, {
    outcome: "not-applied",
    details: { path: storePath, directory },
    remedy: `Import it with \`throughline --store ${shellWord(`jsonl:${directory}`)} import ${shellWord(dirname(storePath))}\`, and move the file away.`,
  });
}

interface OpenDirectory {
  readonly sessions: OpenclawSessions;
  /** Counts the calls that run; a call may run within another. */
  users: number;
  close(): Promise<void>;
}

const open = new Map<string, OpenDirectory>();
/** Caches outlive the store handles: the marks of a store stay valid for the next handle. */
const caches = new Map<string, LoadedCache>();

/**
 * Runs a call on the JSONL store of a state directory. The last running call closes the store, and closing writes
 * `sessions.json`.
 */
export async function inStateDir<Result>(
  stateDir: string,
  call: (sessions: OpenclawSessions) => Promise<Result>,
): Promise<Result> {
  const directory = open.get(stateDir) ?? openDirectory(stateDir);
  open.set(stateDir, directory);
  directory.users++;
  try {
    return await call(directory.sessions);
  } finally {
    directory.users--;
    if (directory.users === 0) {
      open.delete(stateDir);
      await directory.close();
    }
  }
}

export function clearCaches(): void {
  caches.clear();
  for (const { sessions } of open.values()) sessions.clearSessionStoreCacheForTest();
}

function openDirectory(stateDir: string): OpenDirectory {
  const store = createJsonlStore({ root: stateDir });
  const cache: LoadedCache = caches.get(stateDir) ?? new Map();
  caches.set(stateDir, cache);
  const sessions = sessionsOver(store, stateDir, cache);
  return { sessions, users: 0, close: () => store.close() };
}

function sessionsOver(
  store: ReturnType<typeof createJsonlStore>,
  stateDir: string,
  cache: LoadedCache,
): OpenclawSessions {
  return createOpenclawSessions({
    store,
    stateDir,
    homeDir: homedir(),
    clock: systemClock,
    random: systemRandom,
    owner: `process ${process.pid}`,
    cacheTtlMs: cacheTtlFrom(process.env),
    cache,
  });
}
