import { resolve } from "node:path";
import { ThroughlineError } from "@throughline/core";
import { isAgentId } from "@throughline/core/keys";
import { quote } from "@throughline/core/store";
import {
  agentOfSessionsDir,
  classifySessionFile,
  detectDirectoryLayout,
  joinPath,
  type ListedName,
} from "@throughline/openclaw-format";
import { databaseFile } from "./database-file.ts";
import { guarded, refused, skipped, type FoundSource } from "./found-source.ts";
import type { ImportFormat } from "./import-types.ts";
import { indexedFolder } from "./indexed-folder.ts";
import { isDatabaseFile } from "./node/foreign-database.ts";
import { isInside, listSourceNames, openSource } from "./node/source-files.ts";
import { ownAgent } from "./own-store-folder.ts";
import { peekTranscript, sessionIdOf, type TranscriptSource } from "./transcript-source.ts";

interface Search {
  readonly from: "auto" | ImportFormat;
  /** Where the store that imports lies; nothing in it is a source. */
  readonly storeRoot: string | null;
}

/** Formats of databases: a transcript cannot be one, whatever was asked for. */
const databaseFormats: ReadonlySet<string> = new Set(["openclaw-sqlite", "goclaw"]);

/** Databases of other programs, by the names those give them. */
const databaseNames: ReadonlySet<string> = new Set(["openclaw-agent.sqlite", "sessions.db"]);

/** What lies under the given paths, in a fixed order. A path that cannot be read is a result, not an end. */
export async function* findSources(paths: readonly string[], search: Search): AsyncGenerator<FoundSource> {
  for (const path of paths) yield* guarded(resolve(path), findForeign(resolve(path), search));
}

async function* findForeign(path: string, search: Search): AsyncGenerator<FoundSource> {
  if (search.storeRoot !== null && (await isInside(path, search.storeRoot))) {
    throw new ThroughlineError("INPUT_INVALID", `${quote(path)} belongs to the store it would be imported into.`, {
      outcome: "not-applied",
      details: { path },
      remedy: "Its sessions are there already; `throughline sessions --all-agents --archived` lists them.",
    });
  }
  yield* findAt(path, search);
}

async function* findAt(path: string, search: Search): AsyncGenerator<FoundSource> {
  const names = await listSourceNames(path);
  if (names === null) {
    if (await isDatabaseFile(path)) yield* databaseFile(path);
    else yield await loneFile(path, search);
    return;
  }
  switch (detectDirectoryLayout(names)) {
    case "state":
      yield* agentsIn(joinPath(path, "agents"), search);
      // Where GoClaw puts its database, by its two documents.
      yield* databaseIn(path, "sessions.db", names);
      yield* databaseIn(joinPath(path, "goclaw"), "sessions.db", names.some(isFolder("goclaw")) ? null : []);
      // Other tenants of a store of ours: each is imported by itself, into a namespace that is named.
      if (names.some(({ name, isDirectory }) => isDirectory && name === "namespaces"))
        yield skipped(joinPath(path, "namespaces"));
      return;
    case "own-agent":
      return yield* ownAgent(path);
    case "claw0-agent":
      return yield* indexedFolder(joinPath(path, "sessions"), path, "claw0");
    case "agent":
      return yield* findAt(joinPath(path, "sessions"), search);
    case "claw0-root":
      return yield* findAt(joinPath(path, ".sessions"), search);
    case "claw0-keyed":
      return yield* indexedFolder(joinPath(path, "transcripts"), path, "claw0");
    case "sessions":
      return yield* indexedFolder(path, path, "openclaw");
    case "pi-root":
      for (const { name, isDirectory } of names)
        if (isDirectory) yield* guarded(joinPath(path, name), plainFolder(joinPath(path, name), search));
      return;
    case "transcripts":
      return yield* plainFolder(path, search);
    case "unknown":
      return yield* unknownFolder(path, names, search);
  }
}

/** `agents`, or the sessions directory of one agent that has no index. */
async function* unknownFolder(path: string, names: readonly ListedName[], search: Search): AsyncGenerator<FoundSource> {
  const agents = names.filter(({ name, isDirectory }) => isDirectory && isAgentId(name));
  if (path.endsWith("/agents") && agents.length > 0) return yield* agentsIn(path, search);
  const databases = names.filter(({ name, isDirectory }) => !isDirectory && databaseNames.has(name));
  if (databases.length > 0) {
    for (const { name } of databases) yield* databaseIn(path, name, names);
    return;
  }
  if (names.some(isFolder("agent"))) return yield* agentIn(path, search);
  // An agent's directory may well be empty; a directory somebody named should hold something.
  if (agentOfSessionsDir(path) !== null) return;
  throw new ThroughlineError("FORMAT_UNKNOWN", `${quote(path)} is no directory of sessions.`, { details: { path } });
}

async function* agentsIn(path: string, search: Search): AsyncGenerator<FoundSource> {
  for (const { name, isDirectory } of (await listSourceNames(path)) ?? []) {
    if (!isDirectory) continue;
    const folder = joinPath(path, name);
    if (isAgentId(name)) yield* guarded(folder, agentIn(folder, search));
    else
      yield refused(
        folder,
        new ThroughlineError("AGENT_ID_INVALID", `${quote(name)} cannot be an agent's id.`, {
          details: { path: folder },
        }),
      );
  }
}

async function* agentIn(path: string, search: Search): AsyncGenerator<FoundSource> {
  const names = (await listSourceNames(path)) ?? [];
  // Since 2026.8 OpenClaw keeps an agent's sessions here; transcripts beside it are what it has not taken over.
  yield* databaseIn(joinPath(path, "agent"), "openclaw-agent.sqlite", names.some(isFolder("agent")) ? null : []);
  const layout = detectDirectoryLayout(names);
  // An agent's folder without sessions is not an error.
  if (layout !== "unknown") yield* findAt(path, search);
}

/** The database of that name, if it is there. `names` null: the folder's names are not known yet. */
async function* databaseIn(
  folder: string,
  name: string,
  names: readonly ListedName[] | null,
): AsyncGenerator<FoundSource> {
  const found = names ?? (await listSourceNames(folder)) ?? [];
  if (!found.some((entry) => entry.name === name && !entry.isDirectory)) return;
  const path = joinPath(folder, name);
  yield* guarded(path, databaseFile(path));
}

function isFolder(name: string): (entry: ListedName) => boolean {
  return (entry) => entry.isDirectory && entry.name === name;
}

/** A folder of transcripts without an index: each file is what its first lines say. */
async function* plainFolder(folder: string, search: Search): AsyncGenerator<FoundSource> {
  for (const { name, isDirectory } of (await listSourceNames(folder)) ?? []) {
    if (isDirectory) continue;
    const { kind } = classifySessionFile(name);
    if (kind === "other" || kind === "lock" || kind === "temporary" || kind === "index") continue;
    const path = joinPath(folder, name);
    yield* guarded(path, plainFile(path, name, search));
  }
}

async function* plainFile(path: string, name: string, search: Search): AsyncGenerator<FoundSource> {
  const { kind, archivedAt } = classifySessionFile(name);
  const isArchived = kind === "reset-archive" || kind === "deleted-archive";
  if (kind !== "transcript" && !isArchived) yield skipped(path);
  else yield { ...(await loneFile(path, search)), isArchived, archivedAt };
}

/** @throws {ThroughlineError} FORMAT_UNKNOWN */
async function loneFile(path: string, search: Search): Promise<TranscriptSource> {
  const { format: detected, header, sizeBytes } = await peekTranscript(path);
  const agentId = agentOfSessionsDir(path);
  const placed = detected === "pi" && agentId !== null ? "openclaw" : detected;
  const isStated = search.from !== "auto" && !databaseFormats.has(search.from);
  const format = isStated ? search.from : placed;
  if (format === "unknown") {
    const isEmpty = sizeBytes === 0;
    const why = isEmpty ? "is empty" : "does not begin like a transcript";
    throw new ThroughlineError("FORMAT_UNKNOWN", `${quote(path)} ${why}.`, {
      details: { path },
      ...(isEmpty ? { remedy: "There is nothing in it to import." } : {}),
    });
  }
  const ids = sessionIdOf(path, header, format === "openclaw" && agentId !== null);
  return {
    kind: "transcript",
    path,
    format,
    sizeBytes,
    agentId,
    key: header?.key ?? null,
    ...ids,
    header,
    entry: null,
    own: null,
    isArchived: false,
    archivedAt: null,
    open: () => openSource(path),
    findings: [],
  };
}
