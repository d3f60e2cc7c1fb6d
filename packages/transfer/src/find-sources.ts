import { resolve } from "node:path";
import { createFinding, ThroughlineError, type Finding } from "@throughline/core";
import { isAgentId } from "@throughline/core/keys";
import { quote } from "@throughline/core/store";
import {
  agentOfSessionsDir,
  classifySessionFile,
  detectDirectoryLayout,
  joinPath,
  readSessionIndex,
  resolveSessionFile,
  type IndexedSession,
  type ListedName,
  type SessionIndex,
  type TranscriptFormat,
} from "@throughline/openclaw-format";
import { listSourceNames, readSourceText } from "./node/source-files.ts";
import { readOwnEntries, type OwnEntry } from "./own-entries.ts";
import type { ImportFormat } from "./import-types.ts";
import { peekTranscript, sessionIdOf, usableSessionId, type TranscriptSource } from "./transcript-source.ts";

/** A path that is no session, or none that can be read. */
export interface OtherSource {
  readonly kind: "skipped" | "refused";
  readonly path: string;
  readonly findings: readonly Finding[];
  readonly error: ThroughlineError | null;
}

export type FoundSource = TranscriptSource | OtherSource;

interface Search {
  readonly from: "auto" | ImportFormat;
}

/** What lies under the given paths, in a fixed order. A path that cannot be read is a result, not an end. */
export async function* findSources(paths: readonly string[], from: "auto" | ImportFormat): AsyncGenerator<FoundSource> {
  for (const path of paths) yield* guarded(resolve(path), findAt(resolve(path), { from }));
}

async function* findAt(path: string, search: Search): AsyncGenerator<FoundSource> {
  const names = await listSourceNames(path);
  if (names === null) {
    yield await loneFile(path, search);
    return;
  }
  switch (detectDirectoryLayout(names)) {
    case "state":
      yield* agentsIn(joinPath(path, "agents"), search);
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
  const layout = detectDirectoryLayout((await listSourceNames(path)) ?? []);
  // An agent's folder without sessions is not an error.
  if (layout !== "unknown") yield* findAt(path, search);
}

/** Transcripts whose index lies beside or above them. */
async function* indexedFolder(
  folder: string,
  indexFolder: string,
  format: "openclaw" | "claw0",
): AsyncGenerator<FoundSource> {
  const names = ((await listSourceNames(folder)) ?? [])
    .filter((entry) => !entry.isDirectory)
    .map((entry) => entry.name);
  const indexPath = joinPath(indexFolder, "sessions.json");
  const index = await readIndex(indexPath);
  if (index.shape === null && index.findings.length > 0) yield skipped(indexPath, index.findings);
  const agentId = agentOfSessionsDir(folder);
  const taken = new Set<string>();
  for (const session of index.sessions) {
    const fileName = fileOf(session, folder, names);
    if (fileName !== null) taken.add(fileName);
    yield* guarded(
      joinPath(folder, fileName ?? session.sessionId),
      indexed(session, { folder, fileName, format, agentId }),
    );
  }
  if (index.shape !== null && index.findings.length > 0) yield skipped(indexPath, index.findings);
  for (const name of names)
    if (!taken.has(name))
      yield* guarded(joinPath(folder, name), unindexed(joinPath(folder, name), name, { format, agentId }));
}

async function readIndex(path: string): Promise<SessionIndex> {
  try {
    return readSessionIndex(await readSourceText(path), { path });
  } catch (error) {
    if (!ThroughlineError.isInstance(error)) throw error;
    const isMissing = error.code === "FILE_NOT_FOUND";
    return {
      shape: null,
      sessions: [],
      unreadableKeys: [],
      findings: isMissing ? [] : [createFinding("INDEX_UNREADABLE", error.message, { path })],
    };
  }
}

/** The file an entry means, among those that are there; null when none is. */
function fileOf(session: IndexedSession, folder: string, names: readonly string[]): string | null {
  const sessionId = usableSessionId(session.sessionId, joinPath(folder, session.sessionId));
  const stated = resolveSessionFile(folder, { sessionId, sessionFile: session.file });
  if (names.includes(stated.fileName)) return stated.fileName;
  const plain = `${sessionId}.jsonl`;
  // The index of one tutorial names no file, and pi puts the time before the id.
  return names.find((name) => name === plain || name.endsWith(`_${plain}`)) ?? null;
}

async function* indexed(
  session: IndexedSession,
  place: {
    readonly folder: string;
    readonly fileName: string | null;
    readonly format: "openclaw" | "claw0";
    readonly agentId: string | null;
  },
): AsyncGenerator<FoundSource> {
  const { folder, fileName, format, agentId } = place;
  const sessionId = usableSessionId(session.sessionId, joinPath(folder, session.sessionId));
  const stated = resolveSessionFile(folder, { sessionId, sessionFile: session.file });
  const path = joinPath(folder, fileName ?? stated.fileName);
  const findings: Finding[] = [];
  const where = { path, key: session.key };
  if (fileName === null)
    findings.push(createFinding("SESSION_FILE_MISSING", "The index names a transcript that is not there.", where));
  else if (stated.isForeign && format === "openclaw") {
    findings.push(createFinding("SESSION_FILE_FOREIGN", `The index names ${quote(session.file)}.`, where));
  }
  const header = fileName === null ? null : (await peekTranscript(path)).header;
  const nameSessionId = classifySessionFile(fileName ?? "").sessionId;
  yield {
    kind: "transcript",
    path,
    format,
    agentId,
    key: session.key,
    sessionId,
    // One tutorial puts the key before the id; there the name says nothing.
    nameSessionId: format === "claw0" ? null : nameSessionId,
    header,
    entry: session.entry,
    own: null,
    isArchived: false,
    archivedAt: null,
    isMissing: fileName === null,
    findings,
  };
}

async function* unindexed(
  path: string,
  name: string,
  place: { readonly format: TranscriptFormat; readonly agentId: string | null },
): AsyncGenerator<FoundSource> {
  const { kind, archivedAt } = classifySessionFile(name);
  if (kind === "backup" || kind === "corrupt" || kind === "trajectory" || kind === "checkpoint") yield skipped(path);
  const isArchived = kind === "reset-archive" || kind === "deleted-archive";
  if (kind !== "transcript" && !isArchived) return;
  const { header } = await peekTranscript(path);
  const findings = isArchived ? [] : [createFinding("SESSION_UNINDEXED", "No index names this transcript.", { path })];
  const ids = sessionIdOf(path, header, place.format === "openclaw");
  yield {
    kind: "transcript",
    path,
    ...place,
    ...ids,
    key: header?.key ?? null,
    header,
    entry: null,
    own: null,
    isArchived,
    archivedAt,
    isMissing: false,
    findings,
  };
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
  const { format: detected, header } = await peekTranscript(path);
  const agentId = agentOfSessionsDir(path);
  const placed = detected === "pi" && agentId !== null ? "openclaw" : detected;
  const format = search.from === "auto" ? placed : search.from;
  if (format === "unknown")
    throw new ThroughlineError("FORMAT_UNKNOWN", `${quote(path)} does not begin like a transcript.`, {
      details: { path },
    });
  const ids = sessionIdOf(path, header, format === "openclaw" && agentId !== null);
  return {
    kind: "transcript",
    path,
    format,
    agentId,
    key: header?.key ?? null,
    ...ids,
    header,
    entry: null,
    own: null,
    isArchived: false,
    archivedAt: null,
    isMissing: false,
    findings: [],
  };
}

/** One agent of a JSON Lines store of ours. The entries log is the truth; transcripts it does not know are found too. */
async function* ownAgent(path: string): AsyncGenerator<FoundSource> {
  const folder = joinPath(path, "sessions");
  const agentId = agentOfSessionsDir(folder);
  const names = ((await listSourceNames(folder)) ?? [])
    .filter((entry) => !entry.isDirectory)
    .map((entry) => entry.name);
  const logPath = joinPath(path, "throughline", "entries.log");
  const log = readOwnEntries(await readSourceText(logPath).catch((error: unknown) => textOfMissing(error)));
  if (log.isCoded)
    throw new ThroughlineError(
      "CODEC_FAILED",
      `The sessions in ${quote(path)} are coded: open the store with its codec and copy it.`,
      { details: { path } },
    );
  if (log.unreadableLines > 0) {
    const finding = createFinding(
      "ENTRY_UNREADABLE",
      `${log.unreadableLines} lines of the entries log cannot be read.`,
      { path: logPath },
    );
    yield skipped(logPath, [finding]);
  }
  const taken = new Set<string>();
  // Archived ones first: their keys may be those of sessions that are active now.
  for (const own of log.entries.toSorted((a, b) => Number(b.isArchived) - Number(a.isArchived))) {
    taken.add(own.fileName);
    yield* guarded(joinPath(folder, own.fileName), ownSession(own, { folder, names, agentId }));
  }
  for (const name of names) {
    if (!taken.has(name))
      yield* guarded(joinPath(folder, name), unindexed(joinPath(folder, name), name, { format: "jsonl", agentId }));
  }
}

async function* ownSession(
  own: OwnEntry,
  place: { readonly folder: string; readonly names: readonly string[]; readonly agentId: string | null },
): AsyncGenerator<FoundSource> {
  const { folder, names, agentId } = place;
  const { fileName } = resolveSessionFile(folder, { sessionId: own.sessionId, sessionFile: own.fileName });
  const path = joinPath(folder, fileName);
  const isMissing = !names.includes(fileName);
  const header = isMissing ? null : (await peekTranscript(path)).header;
  const ids = { sessionId: own.sessionId, nameSessionId: null };
  // A session nothing was ever appended to has no file.
  yield {
    kind: "transcript",
    path,
    format: "jsonl",
    agentId,
    key: own.key,
    ...ids,
    header,
    entry: own.entry,
    own,
    isArchived: own.isArchived,
    archivedAt: null,
    isMissing,
    findings: [],
  };
}

function textOfMissing(error: unknown): string {
  if (ThroughlineError.isInstance(error) && error.code === "FILE_NOT_FOUND") return "";
  throw error;
}

/** What cannot be read is refused, and the search goes on. */
async function* guarded(path: string, found: AsyncGenerator<FoundSource>): AsyncGenerator<FoundSource> {
  try {
    yield* found;
  } catch (error) {
    if (!ThroughlineError.isInstance(error)) throw error;
    yield refused(path, error);
  }
}

function skipped(path: string, findings: readonly Finding[] = []): OtherSource {
  return { kind: "skipped", path, findings, error: null };
}

function refused(path: string, error: ThroughlineError): OtherSource {
  const findings = error.code === "FORMAT_UNKNOWN" ? [] : [createFinding("FILE_UNREADABLE", error.message, { path })];
  return { kind: "refused", path, findings, error };
}
