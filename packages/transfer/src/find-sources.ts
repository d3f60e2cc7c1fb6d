import { resolve } from "node:path";
import { isAgentId, quote, shellWord } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import { foreignFormats } from "@throughline/foreign-formats";
import { type ForeignFormatName, mayLookFlat } from "@throughline/foreign-formats/internal";
import { agentOfSessionsDir, classifySessionFile, joinPath } from "@throughline/openclaw-format/internal";
import { CompanionFiles } from "./companion-files.ts";
import { databaseFile } from "./database-file.ts";
import { readFolderNames, type FolderNames, surveyFolder, type FolderSurvey } from "./folder-names.ts";
import { guarded, refused, skipped, type FoundSource } from "./found-source.ts";
import type { ImportFormat, SourceFormat } from "./import-types.ts";
import { indexedFolder, isRenamed } from "./indexed-folder.ts";
import { foreignBeginning, foreignFolder, foreignSources, type ForeignBeginning } from "./foreign-sources.ts";
import { isDatabaseFile } from "./node/foreign-database.ts";
import { isFile, openSource } from "./node/source-files.ts";
import { isOwnPlace, ownAgent } from "./own-store-folder.ts";
import type { SearchLook } from "./search-look.ts";
import {
  peekTranscript,
  strangeBeginning,
  sessionIdOf,
  transcriptSource,
  type Peek,
  type TranscriptSource,
} from "./transcript-source.ts";

interface Search {
  readonly from: "auto" | ImportFormat;
  readonly companions: CompanionFiles;
  /** Names the folder of the importing store; nothing inside it is a source. */
  readonly storeRoot: string | null;
  readonly look: SearchLook;
}

/** A transcript never has one of these formats, even if the caller asked for one. */
const databaseFormats: ReadonlySet<string> = new Set(["openclaw-sqlite", "goclaw"]);

function mayBeKind(from: ImportFormat, isDatabase: boolean): boolean {
  if (databaseFormats.has(from)) return isDatabase;
  return !isDatabase || foreignFormats.get(from as ForeignFormatName)?.database !== undefined;
}

function otherKind(path: string, from: string): ThroughlineError {
  return new ThroughlineError("INPUT_INVALID", `${quote(path)} is nothing that ${quote(from)} names.`, {
    outcome: "not-applied",
    details: { path, from },
    remedy: "Leave the format away: it is found by what is in the file.",
  });
}

/** Reports a file that cannot be read as the requested format and that no other known program writes. */
function otherFormat(path: string, from: string, detected: string): ThroughlineError {
  const program = foreignFormats.get(from as ForeignFormatName)?.program ?? from;
  if (detected !== "unknown") return otherKind(path, from);
  return new ThroughlineError("FORMAT_UNKNOWN", `${quote(path)} does not start like a transcript of ${program}.`, {
    outcome: "not-applied",
    details: { path, from },
    remedy: "Check that this is the file, and that it is as the program wrote it. No format of `--from` fits it.",
  });
}

/**
 * Yields the sources under the given paths in a fixed order. A path that cannot be read yields a refusal, so the search
 * continues.
 */
export async function* findSources(
  paths: readonly string[],
  asked: Omit<Search, "companions">,
): AsyncGenerator<FoundSource> {
  const search = { ...asked, companions: new CompanionFiles(asked.look) };
  for (const path of paths) yield* guarded(resolve(path), findForeign(resolve(path), search));
}

async function* findForeign(path: string, search: Search): AsyncGenerator<FoundSource> {
  if (search.storeRoot !== null && (await isOwnPlace(path, search.storeRoot))) {
    throw new ThroughlineError("INPUT_INVALID", `${quote(path)} belongs to the store it would be imported into.`, {
      outcome: "not-applied",
      details: { path },
      remedy: "Its sessions are there already; `throughline sessions --all-agents --archived` lists them.",
    });
  }
  for await (const found of findAt(path, search)) {
    // A directory may also hold transcripts of another program beside the requested ones; they are skipped.
    const isOther = found.kind === "transcript" && isOtherKind(search.from, found.format);
    yield isOther ? skipped(found.path) : found;
  }
}

/** The last writes to a database are in the log beside it. */
function isKnownFile(path: string, { look }: Pick<Search, "look">): Promise<boolean> {
  return look.isKnown(path, () => [`${path}-wal`]);
}

/** True if the caller asked for one kind, database or program, and the source is of another. */
function isOtherKind(from: Search["from"], format: SourceFormat): boolean {
  if (from === "auto" || from === format) return false;
  return isDistinct(from) || isDistinct(format);
}

/** True if no other format can read these sources: a database, or lines of another program. */
function isDistinct(format: string): boolean {
  return databaseFormats.has(format) || isForeignName(format);
}

function isForeignName(format: string): boolean {
  return (foreignFormats as ReadonlyMap<string, unknown>).has(format);
}

/** Yields one session of a database or of a file with several, by the path that reports print. */
async function* inFile(path: string, search: Search): AsyncGenerator<FoundSource> {
  const filePath = path.slice(0, path.lastIndexOf("#"));
  let isThere = false;
  for await (const found of findAt(filePath, search)) {
    if (found.path !== path) continue;
    isThere = true;
    yield found;
  }
  if (isThere) return;
  const message = `The file ${quote(filePath)} holds no session ${quote(path.slice(filePath.length + 1))}.`;
  throw new ThroughlineError("FILE_NOT_FOUND", message, { details: { path } });
}

/** True if a path names a session inside a file and not a file. */
async function isInFile(path: string): Promise<boolean> {
  const at = path.lastIndexOf("#");
  return at > 0 && !(await isFile(path)) && isFile(path.slice(0, at));
}

/**
 * Yields the sessions in the folders of OpenClaw and pi in a user's home. A folder without sessions is no error,
 * because the caller did not name it.
 */
async function* homeFolders(path: string, folders: readonly string[], search: Search): AsyncGenerator<FoundSource> {
  for (const name of [".openclaw", ".pi"].filter((each) => folders.includes(each))) {
    const folder = joinPath(path, name);
    try {
      yield* findAt(folder, search);
    } catch (error) {
      if (!ThroughlineError.isInstance(error)) throw error;
      if (error.code !== "FORMAT_UNKNOWN") yield refused(folder, error);
    }
  }
}

async function* findAt(path: string, search: Search): AsyncGenerator<FoundSource> {
  if (await isInFile(path)) return yield* inFile(path, search);
  if (!search.look.entersFolder(path)) return;
  const survey = await surveyFolder(path);
  if (survey === null) {
    if (await isKnownFile(path, search)) return;
    const isDatabase = await isDatabaseFile(path);
    const { from } = search;
    if (from !== "auto" && !mayBeKind(from, isDatabase)) throw otherKind(path, from);
    if (!isDatabase) return yield* loneFile(path, search);
    for await (const found of databaseFile(path, search.look)) {
      if (found.kind === "transcript" && isOtherKind(from, found.format)) throw otherKind(path, from);
      yield found;
    }
    return;
  }
  const { layout, folders } = survey;
  let isForeign = yield* foreignFolder(path, survey, search);
  for await (const found of homeFolders(path, folders, search)) {
    isForeign = true;
    yield found;
  }
  if (isForeign) return;
  switch (layout) {
    case "state":
      yield* agentsIn(joinPath(path, "agents"), search);
      // The two documents of GoClaw put its database at these two locations.
      yield* databaseIn(path, "sessions.db", search, survey);
      if (folders.includes("goclaw")) yield* databaseIn(joinPath(path, "goclaw"), "sessions.db", search);
      // Namespaces of a Throughline store belong to other tenants, so each must be imported into a named namespace.
      if (folders.includes("namespaces")) yield skipped(joinPath(path, "namespaces"));
      return;
    case "own-agent":
      return yield* ownAgent(path);
    case "claw0-agent":
      return yield* indexedFolder(joinPath(path, "sessions"), path, "claw0", search.look);
    case "agent":
      return yield* findAt(joinPath(path, "sessions"), search);
    case "claw0-root":
      return yield* findAt(joinPath(path, ".sessions"), search);
    case "claw0-keyed":
      return yield* indexedFolder(joinPath(path, "transcripts"), path, "claw0", search.look);
    case "sessions":
      return yield* indexedFolder(path, path, "openclaw", search.look);
    case "pi-root":
      for (const name of folders) yield* guarded(joinPath(path, name), plainFolder(joinPath(path, name), search));
      return;
    case "transcripts":
      return yield* plainFolder(path, search);
    case "unknown":
      return yield* unknownFolder(path, survey, search);
  }
}

/** Handles an `agents` folder, and the sessions directory of one agent without an index. */
async function* unknownFolder(path: string, survey: FolderSurvey, search: Search): AsyncGenerator<FoundSource> {
  const { folders, databases } = survey;
  if (path.endsWith("/agents") && folders.some(isAgentId)) return yield* agentsIn(path, search);
  // One of GoClaw's documents puts the sessions here, and a state directory may hold nothing else.
  const inner = folders.includes("goclaw") ? await surveyFolder(joinPath(path, "goclaw")) : null;
  const hasInner = inner?.databases.includes("sessions.db") === true;
  if (databases.length > 0 || hasInner) {
    for (const name of databases) yield* databaseIn(path, name, search, survey);
    if (hasInner) yield* databaseIn(joinPath(path, "goclaw"), "sessions.db", search, inner);
    return;
  }
  if (folders.includes("agent")) {
    // pi keeps its sessions in `agent/sessions`; OpenClaw's `agent` folder holds no sessions folder.
    const folder = joinPath(path, "agent");
    const isOfPi = (await surveyFolder(folder))?.layout === "agent";
    return yield* isOfPi ? findAt(folder, search) : agentIn(path, search);
  }
  // An agent's directory may be empty, but a directory that the caller names should hold sessions.
  if (agentOfSessionsDir(path) !== null) return;
  throw noSessionFile(path);
}

/** A transcript that was renamed is not found in a folder, because other files have names like it. */
function noSessionFile(path: string): ThroughlineError {
  return new ThroughlineError("FORMAT_UNKNOWN", `No session file was found in ${quote(path)}.`, {
    details: { path },
    remedy: `Folders are searched for the names that programs give, such as \`UUID.jsonl\` or \`rollout-….jsonl\`. A file with another name can be named directly: \`throughline import ${shellWord(joinPath(path, "FILE"))}\`.`,
  });
}

async function* agentsIn(path: string, search: Search): AsyncGenerator<FoundSource> {
  for (const name of (await surveyFolder(path))?.folders ?? []) {
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
  const survey = await surveyFolder(path);
  // Since 2026.8 OpenClaw keeps an agent's sessions in this database. Transcripts beside it are sessions that it has
  // not moved there.
  if (survey?.folders.includes("agent") === true)
    yield* databaseIn(joinPath(path, "agent"), "openclaw-agent.sqlite", search);
  if (survey !== null && survey.layout !== "unknown") yield* findAt(path, search);
}

/**
 * Yields the sessions of the named database if the folder holds it. Callers that have the folder's survey pass it,
 * which saves a second listing.
 */
async function* databaseIn(
  folder: string,
  name: string,
  search: Search,
  survey?: FolderSurvey,
): AsyncGenerator<FoundSource> {
  if (!search.look.entersFolder(folder)) return;
  const { databases } = survey ?? (await surveyFolder(folder)) ?? {};
  if (databases?.includes(name) !== true) return;
  const path = joinPath(folder, name);
  if (await isKnownFile(path, search)) return;
  yield* guarded(path, databaseFile(path, search.look));
}

/** In a folder without an index, the first lines of each file decide its format. */
async function* plainFolder(folder: string, search: Search): AsyncGenerator<FoundSource> {
  if (!search.look.entersFolder(folder)) return;
  using names = await readFolderNames(folder);
  for (const name of names.rest()) {
    const { kind } = classifySessionFile(name);
    if (kind === "other" || kind === "lock" || kind === "temporary" || kind === "index") continue;
    const path = joinPath(folder, name);
    yield* guarded(path, plainFile(path, name, { names, search }));
  }
}

async function* plainFile(
  path: string,
  name: string,
  { names, search }: { readonly names: FolderNames; readonly search: Search },
): AsyncGenerator<FoundSource> {
  const { kind, archivedAt } = classifySessionFile(name);
  const isArchived = kind === "reset-archive" || kind === "deleted-archive";
  if (kind !== "transcript" && !isArchived) return yield skipped(path);
  if (await isKnownFile(path, search)) return;
  const isCopy = isArchived && !isRenamed(name, names);
  for await (const source of loneFile(path, search)) yield { ...source, isArchived, isCopy, archivedAt };
}

/** @throws {ThroughlineError} FORMAT_UNKNOWN when the caller asked for another format */
function foreignFile(path: string, beginning: ForeignBeginning, search: Search): AsyncGenerator<TranscriptSource> {
  const { from, companions } = search;
  const { name, program } = beginning.format;
  if (from === "auto" || from === name) return foreignSources(path, beginning, companions);
  throw new ThroughlineError("FORMAT_UNKNOWN", `${quote(path)} is a transcript of ${program}, not of ${from}.`, {
    details: { path, from, format: name },
    remedy: `Import it without \`--from\`, or with \`--from ${name}\`.`,
  });
}

const mayBeForeign: ReadonlySet<string> = new Set(["unknown", "claw0"]);

/** @throws {ThroughlineError} FORMAT_UNKNOWN */
async function* loneFile(path: string, search: Search): AsyncGenerator<TranscriptSource> {
  const peek = await peekTranscript(path);
  const named = foreignFormats.get(search.from as ForeignFormatName);
  const beginning = mayBeForeign.has(peek.format) ? await foreignBeginning(path, named) : null;
  // A line of a document, or a message of a provider, may look like a flat line of claw0.
  const isOther = beginning !== null && (peek.format === "unknown" || mayLookFlat(beginning.format, beginning.layout));
  const isOpen = isOther && named === undefined && beginning.format.mayTurnOut?.(beginning.sample) === true;
  if (isOpen) throw openDocument(path, beginning);
  if (!isOther) yield await ownFile(path, peek, search);
  else yield* foreignFile(path, beginning, search);
}

function openDocument(path: string, { format: { name, program } }: ForeignBeginning): ThroughlineError {
  const message = `${quote(path)} ends within its list, and what is there may be of ${program} or of another format.`;
  return new ThroughlineError("FORMAT_UNKNOWN", message, {
    outcome: "not-applied",
    details: { path },
    remedy: `Import it again once it is complete, or name its format: --from ${name}.`,
  });
}

/** pi keeps the sessions of each project in a folder of its own. */
const piFile = /[/\\]\.pi[/\\]agent[/\\]sessions[/\\][^/\\]{1,255}[/\\][^/\\]{1,255}$/;

/** @throws {ThroughlineError} FORMAT_UNKNOWN */
async function ownFile(path: string, peek: Peek, search: Search): Promise<TranscriptSource> {
  const { format: detected, header, sizeBytes } = peek;
  if (isForeignName(search.from)) throw otherFormat(path, search.from, detected);
  // A folder above pi's may have any name, also that of OpenClaw's agents.
  const agentId = piFile.test(path) ? null : agentOfSessionsDir(path);
  const placed = detected === "pi" && agentId !== null ? "openclaw" : detected;
  const isStated = search.from !== "auto" && !databaseFormats.has(search.from);
  const format = isStated ? search.from : placed;
  const strange = format === "unknown" || isStated ? await strangeBeginning(path) : null;
  if (strange !== null)
    throw new ThroughlineError("FORMAT_UNKNOWN", `${quote(path)} ${strange.what}.`, {
      details: { path },
      remedy: strange.remedy,
    });
  if (format === "unknown") {
    const isEmpty = sizeBytes === 0;
    const why = isEmpty ? "is empty" : "does not begin like a transcript";
    throw new ThroughlineError("FORMAT_UNKNOWN", `${quote(path)} ${why}.`, {
      details: { path },
      ...(isEmpty ? { remedy: "There is nothing in it to import." } : {}),
    });
  }
  const ids = sessionIdOf(path, header, format === "openclaw" && agentId !== null);
  return transcriptSource({
    path,
    format,
    sizeBytes,
    agentId,
    key: header?.key ?? null,
    ...ids,
    header,
    open: () => openSource(path),
  });
}
