import { createFinding, quote } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import { agentOfSessionsDir, joinPath, resolveSessionFile } from "@throughline/openclaw-format/internal";
import { readFolderNames, type FolderNames } from "./folder-names.ts";
import { guarded, skipped, type FoundSource } from "./found-source.ts";
import { unindexed } from "./indexed-folder.ts";
import { openSource, isFile, isInside, isSamePath } from "./node/source-files.ts";
import { readOwnEntries, type OwnEntry } from "./own-entries.ts";
import { peekTranscript, transcriptSource } from "./transcript-source.ts";
import { join } from "node:path";
import { isDatabaseFile } from "./node/foreign-database.ts";

/**
 * Yields the sessions of one agent of a JSON Lines store. The entries log is authoritative; transcripts that it does
 * not list are found too.
 */
export async function* ownAgent(path: string): AsyncGenerator<FoundSource> {
  const folder = joinPath(path, "sessions");
  const agentId = agentOfSessionsDir(folder);
  using names = await readFolderNames(folder);
  const logPath = joinPath(path, "throughline", "entries.log");
  using log = await readOwnEntries(logPath);
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
  for (const own of log.rows()) {
    names.take(own.fileName);
    yield* guarded(joinPath(folder, own.fileName), ownSession(own, { folder, names, agentId }));
  }
  for (const name of names.rest())
    yield* guarded(
      joinPath(folder, name),
      unindexed(joinPath(folder, name), name, { files: names, format: "jsonl", agentId }),
    );
}

async function* ownSession(
  own: OwnEntry,
  place: { readonly folder: string; readonly names: FolderNames; readonly agentId: string | null },
): AsyncGenerator<FoundSource> {
  const { folder, names, agentId } = place;
  const { fileName } = resolveSessionFile(folder, { sessionId: own.sessionId, sessionFile: own.fileName });
  const path = joinPath(folder, fileName);
  const isMissing = !names.has(fileName);
  const { header, sizeBytes } = isMissing ? { header: null, sizeBytes: 0 } : await peekTranscript(path);
  // A session without appends has no file.
  yield transcriptSource({
    path,
    format: "jsonl",
    sizeBytes,
    agentId,
    key: own.key,
    sessionId: own.sessionId,
    header,
    entry: own.entry,
    own,
    isArchived: own.isArchived,
    open: isMissing ? null : () => openSource(path),
  });
}

/**
 * True if a path belongs to a JSON Lines store: its root, or a folder or transcript in `agents` or `namespaces`. A
 * database there belongs to OpenClaw, and folders beside these two do not belong to the store.
 * @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE
 */
export async function isOwnPlace(path: string, storeRoot: string): Promise<boolean> {
  if (await isSamePath(path, storeRoot)) return true;
  const own = await Promise.all(["agents", "namespaces"].map((name) => isInside(path, join(storeRoot, name))));
  return own.includes(true) && !((await isFile(path)) && (await isDatabaseFile(path)));
}
