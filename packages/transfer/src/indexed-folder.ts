import { createFinding, quote } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import {
  agentOfSessionsDir,
  archivedFrom,
  classifySessionFile,
  type IndexedSession,
  joinPath,
  resolveSessionFile,
  type TranscriptFormat,
} from "@throughline/openclaw-format/internal";
import { openIndex } from "./open-index.ts";
import { readFolderNames, type FolderNames } from "./folder-names.ts";
import { readJsonObject } from "./database-session.ts";
import { guarded, skipped, type FoundSource } from "./found-source.ts";
import { openSource, readSourceText } from "./node/source-files.ts";
import { createTopics, topicFileOf } from "./indexed-topics.ts";
import { fullLook, type SearchLook } from "./search-look.ts";
import { peekTranscript, sessionIdOf, transcriptSource, usableSessionId } from "./transcript-source.ts";

export async function* indexedFolder(
  folder: string,
  indexFolder: string,
  format: "openclaw" | "claw0",
  look: SearchLook,
): AsyncGenerator<FoundSource> {
  if (!look.entersFolder(folder)) return;
  using files = await readFolderNames(folder);
  if (await isAllKnown(folder, files.rest(), joinPath(indexFolder, "sessions.json"), look)) return;
  using topics = createTopics();
  const indexPath = joinPath(indexFolder, "sessions.json");
  const index = await openIndex(indexPath);
  if (index.isUnreadable) yield skipped(indexPath, index.findings);
  const place: IndexPlace = { folder, files, format, agentId: agentOfSessionsDir(folder), look };
  // Archives come first: an archived session releases its key to its successor, which the index names.
  for (const name of files.rest()) {
    topics.takeFile(name);
    if (!isRenamed(name, files)) continue;
    files.take(name);
    yield* guarded(joinPath(folder, name), unindexed(joinPath(folder, name), name, place));
  }
  // A topic has the session id of its conversation. The conversation keeps that id and its transcript, so topics come
  // last.
  for await (const session of index.sessions()) if (!topics.takeEntry(session)) yield* indexedSession(session, place);
  for (const session of topics.entries()) yield* indexedSession(session, place);
  if (!index.isUnreadable && index.findings.length > 0) yield skipped(indexPath, index.findings);
  for (const name of files.rest())
    yield* guarded(
      joinPath(folder, name),
      unindexed(joinPath(folder, name), name, { ...place, topicKey: topics.keyOfFile(name) }),
    );
}

/** True if neither the index nor a transcript has changed. The search stops at the first one that has. */
async function isAllKnown(
  folder: string,
  names: Iterable<string>,
  indexPath: string,
  look: SearchLook,
): Promise<boolean> {
  if (!(await look.isKnown(indexPath))) return false;
  for (const name of names) if (isTranscript(name) && !(await look.isKnown(joinPath(folder, name)))) return false;
  return true;
}

function isTranscript(name: string): boolean {
  return transcriptKinds.has(classifySessionFile(name).kind);
}

const transcriptKinds: ReadonlySet<string> = new Set(["transcript", "reset-archive", "deleted-archive"]);

interface IndexPlace {
  readonly folder: string;
  readonly files: FolderNames;
  readonly format: "openclaw" | "claw0";
  readonly agentId: string | null;
  readonly look: SearchLook;
}

async function* indexedSession(session: IndexedSession, place: IndexPlace): AsyncGenerator<FoundSource> {
  const { folder, files, look } = place;
  const fileName = fileOf(session, folder, files);
  if (fileName !== null) files.take(fileName);
  if (fileName !== null && (await look.isKnown(joinPath(folder, fileName)))) return;
  yield* guarded(joinPath(folder, fileName ?? session.sessionId), indexed(session, { ...place, fileName }));
}

/**
 * True for an archived transcript whose original file no longer exists; false for an archive copy of an existing file.
 */
export function isRenamed(name: string, files: FolderNames): boolean {
  const base = archivedFrom(name);
  return base !== null && !files.has(base);
}

/** Finds the file of an entry among the existing ones; null when none fits. */
function fileOf(session: IndexedSession, folder: string, files: FolderNames): string | null {
  const sessionId = usableSessionId(session.sessionId, joinPath(folder, session.sessionId));
  const stated = resolveSessionFile(folder, { sessionId, sessionFile: session.file });
  const topic = session.file === null ? topicFileOf(session.key, sessionId) : null;
  if (topic !== null && files.has(topic)) return topic;
  // A topic without a transcript has the session id of its conversation, but that transcript belongs to another
  // session.
  if (topic !== null && files.isTaken(stated.fileName)) return null;
  if (files.has(stated.fileName)) return stated.fileName;
  // One tutorial's index names no file, and pi puts the time before the id.
  return files.endingWith(`${sessionId}.jsonl`);
}

async function* indexed(
  session: IndexedSession,
  place: IndexPlace & { readonly fileName: string | null },
): AsyncGenerator<FoundSource> {
  const { folder, fileName, files, format, agentId } = place;
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
  const { header, sizeBytes } = fileName === null ? { header: null, sizeBytes: 0 } : await peekTranscript(path);
  const nameSessionId = classifySessionFile(fileName ?? "").sessionId;
  yield transcriptSource({
    path,
    format,
    sizeBytes,
    agentId,
    // One tutorial's index holds ids only.
    key: session.key ?? header?.key ?? null,
    sessionId,
    // One tutorial puts the key before the id; there the file name does not state the id.
    nameSessionId: format === "claw0" ? null : nameSessionId,
    header,
    entry: await withSidecar(session.entry, { folder, fileName, files }),
    open: fileName === null ? null : () => openSource(path),
    findings,
  });
}

/**
 * ClawCode keeps the session id of the Claude Agent SDK in a file beside the transcript; later versions keep it only
 * there. A value in the entry has priority.
 */
async function withSidecar(
  entry: IndexedSession["entry"],
  place: { readonly folder: string; readonly fileName: string | null; readonly files: FolderNames },
): Promise<IndexedSession["entry"]> {
  if (place.fileName === null || typeof entry["sdkSessionId"] === "string") return entry;
  const stem = place.fileName.replace(/\.jsonl$/, "");
  const name = [`${place.fileName}.claude-sdk.json`, `${stem}.claude-sdk.json`].find((found) => place.files.has(found));
  if (name === undefined) return entry;
  const { resumeSessionId } = readJsonObject(await readSourceText(joinPath(place.folder, name))) ?? {};
  return typeof resumeSessionId === "string" && resumeSessionId !== ""
    ? { ...entry, sdkSessionId: resumeSessionId }
    : entry;
}

export async function* unindexed(
  path: string,
  name: string,
  {
    files,
    format,
    agentId,
    topicKey = null,
    look = fullLook,
  }: {
    readonly files: FolderNames;
    readonly format: TranscriptFormat;
    readonly agentId: string | null;
    /** Holds the key of the file's topic when the index names its conversation. */
    readonly topicKey?: string | null;
    readonly look?: SearchLook;
  },
): AsyncGenerator<FoundSource> {
  const { kind, archivedAt } = classifySessionFile(name);
  if (kind === "backup" || kind === "corrupt" || kind === "trajectory" || kind === "checkpoint") yield skipped(path);
  const isArchived = kind === "reset-archive" || kind === "deleted-archive";
  if (kind !== "transcript" && !isArchived) return;
  if (await look.isKnown(path)) return;
  const { header, sizeBytes } = await peekTranscript(path);
  const findings = isArchived ? [] : [createFinding("SESSION_UNINDEXED", "No index names this transcript.", { path })];
  const ids = sessionIdOf(path, header, format === "openclaw");
  yield transcriptSource({
    path,
    format,
    agentId,
    sizeBytes,
    ...ids,
    key: header?.key ?? topicKey,
    header,
    isArchived,
    isCopy: isArchived && !isRenamed(name, files),
    archivedAt,
    open: () => openSource(path),
    findings,
  });
}
