import {
  hasErrorCode,
  type SessionEntry,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import {
  archivedAtMs,
  assertKnownOptions,
  listSessions,
  loadEntryBlobs,
  systemRandom,
} from "@throughline/core/internal";
import {
  archiveFileName,
  classifySessionFile,
  joinPath,
  type SessionFileName,
  sessionsJsonPieces,
  transcriptFileNameOf,
} from "@throughline/openclaw-format/internal";
import { type ForeignFormat, foreignFormats } from "@throughline/foreign-formats";
import type { ForeignFormatName, WritableFormatName } from "@throughline/foreign-formats/internal";
import { foreignSessionId } from "./export-foreign.ts";
import { sessionPieces } from "./export-session.ts";
import {
  allTable,
  fileTable,
  workingDirectoryOf,
  type ExportAllOptions,
  type ExportFileOptions,
  type ExportFormat,
  type ExportOptions,
  type ExportRemark,
} from "./export-types.ts";
import { noteSeqs, receiptChain, receiptOf } from "./import-receipt.ts";
import { createScratchMap, type ScratchMap } from "./scratch-map.ts";
import { assertNoFile, sizeIfSame, writeNewFile } from "./node/target-files.ts";

/** Describes a file that an export wrote, or a session that it could not write. */
export interface ExportedFile {
  /** Names the file that was written, or the one that a failed session would have had. */
  readonly path: string;
  /** Holds the session's key; null for an index. */
  readonly key: string | null;
  /** Holds the id of the session in the store; null for an index. */
  readonly sessionId: string | null;
  /** Counts the session's records that the file covers; 0 for an index. */
  readonly records: number;
  /** Holds the size of the file in bytes; 0 for a session that failed. */
  readonly sizeBytes: number;
  /** Lists omissions, additions and changes, in the order in which they were found. */
  readonly remarks: readonly ExportRemark[];
  /** States why `exportAll` wrote no file for the session and no index member; null otherwise. */
  readonly error: ThroughlineError | null;
}

/**
 * Writes one session to a new file with mode 0600. The file is complete or does not exist.
 * @throws {ThroughlineError} EXPORT_EXISTS, SESSION_NOT_FOUND
 */
export async function exportToFile(
  store: SessionStore,
  ref: SessionRef,
  path: string,
  options: ExportFileOptions,
): Promise<ExportedFile> {
  assertKnownOptions<ExportFileOptions>("exportToFile", options, fileTable);
  return writeExport(store, ref, path, options);
}

async function writeExport(
  store: SessionStore,
  ref: SessionRef,
  path: string,
  options: ExportFileOptions,
): Promise<ExportedFile> {
  await assertNoFile(path);
  return exportTo(store, ref, path, options, async (chunks) => {
    const { sizeBytes } = await writeNewFile(path, chunks, options.random ?? systemRandom);
    return sizeBytes;
  });
}

/** An interrupted export may have written the file already. A file with exactly these bytes is kept. */
async function exportOnce(
  store: SessionStore,
  ref: SessionRef,
  path: string,
  options: ExportFileOptions,
): Promise<ExportedFile> {
  try {
    return await writeExport(store, ref, path, options);
  } catch (error) {
    if (!hasErrorCode(error, "EXPORT_EXISTS")) throw error;
    return exportTo(store, ref, path, options, async (chunks) => {
      const sizeBytes = await sizeIfSame(path, chunks);
      if (sizeBytes === null) throw error;
      return sizeBytes;
    });
  }
}

async function exportTo(
  store: SessionStore,
  ref: SessionRef,
  path: string,
  options: ExportFileOptions,
  write: (chunks: AsyncIterable<Uint8Array>) => Promise<number>,
): Promise<ExportedFile> {
  const state = await store.load(ref);
  const remarks: ExportRemark[] = [];
  const onRemark = (remark: ExportRemark): void => {
    remarks.push(remark);
    options.onRemark?.(remark);
  };
  const sizeBytes = await write(sessionPieces(store, ref, { ...options, onRemark }));
  const leftOut = remarks.reduce((sum, { what, records = 1 }) => sum + (what === "left-out" ? records : 0), 0);
  return {
    path,
    key: ref.key,
    sessionId: state?.sessionId ?? null,
    records: state === null ? 0 : state.head.lastSeq - noteCount(state.entry) - leftOut,
    sizeBytes,
    remarks,
    error: null,
  };
}

/** Counts records that have no line in the file, because the entry holds their data. */
function noteCount(entry: SessionEntry): number {
  return new Set(receiptChain(entry).flatMap(noteSeqs)).size;
}

/**
 * Writes all sessions below a directory.
 * `jsonl` and `openclaw` write `agents/<agent>/sessions/` with a sessions.json that holds every field of the entries.
 * `claw0` adds claw0's index one folder up. `pi` writes a folder for each working directory.
 *
 * Each file is a result. A session that cannot be read, or has no valid file name, is a result with an error; the other
 * sessions are written. A run after an interrupted export resumes: a session's file with exactly the expected bytes
 * counts as written.
 * @throws {ThroughlineError} EXPORT_EXISTS, also of an index: an export that was complete; what was written before
 * stays
 */
export async function* exportAll(
  store: SessionStore,
  directory: string,
  options: ExportAllOptions,
): AsyncGenerator<ExportedFile> {
  assertKnownOptions<ExportAllOptions>("exportAll", options, allTable);
  const { agentId, namespace = "", archived = false } = options;
  using indexes = new AgentIndexes();
  const layout = foreignFormats.has(options.to as ForeignFormatName) ? foreignLayout : layouts[options.to as OwnFormat];
  const query = { namespace, state: archived ? "any" : "active", sort: "key", limit: 200 } as const;
  for await (const state of listSessions(store, agentId === undefined ? query : { ...query, agentId })) {
    if (layout.indexPath !== null) await assertNoFile(layout.indexPath(directory, state.ref.agentId));
    let path = directory;
    try {
      path = await layout.path({ store, state, directory, options });
      // The entry is read before the file is written, so that an unreadable entry leaves no file.
      const member = layout.indexPath === null ? null : await layout.member(store, state, path);
      yield await exportOnce(store, state.ref, path, options);
      if (layout.indexPath !== null) indexes.add(state.ref.agentId, member);
    } catch (error) {
      if (!hasErrorCode(error, ...ofOneSession)) throw error;
      const { ref, sessionId } = state;
      yield { path, key: ref.key, sessionId, records: 0, sizeBytes: 0, remarks: [], error };
    }
  }
  if (layout.indexPath === null) return;
  for (const [agent, entries] of indexes.all)
    yield await writeIndex(layout.indexPath(directory, agent), entries, options);
}

interface ExportPlace {
  readonly store: SessionStore;
  readonly state: SessionState;
  readonly directory: string;
  readonly options: ExportOptions;
}

interface ExportLayout {
  path(place: ExportPlace): string | Promise<string>;
  readonly indexPath: ((directory: string, agentId: string) => string) | null;
  /** Returns the session's name and value in the index; null for a session that is in no index. */
  member(store: SessionStore, state: SessionState, path: string): Promise<IndexMember | null>;
}

type IndexMember = readonly [name: string, value: unknown];

const openclawLayout: ExportLayout = {
  path: ({ state, directory }) => openclawPath(state, directory),
  indexPath: (directory, agentId) => joinPath(directory, "agents", agentId, "sessions", "sessions.json"),
  member: async (store, state, path) =>
    state.archived ? null : [state.ref.key, await exportedEntry(store, state, path)],
};

const foreignLayout: ExportLayout = {
  path: ({ state, directory, options }) => {
    const { writer } = foreignFormats.get(options.to as ForeignFormatName) as ForeignFormat;
    const { entry, createdAtMs } = state;
    const sessionId = foreignSessionId(options.to as ForeignFormatName, state, options);
    const cwd = workingDirectoryOf(null, entry, options);
    const parts = writer?.path({ sessionId, cwd, createdAtMs, projectFolder: null });
    return joinPath(directory, ...(parts ?? [`${sessionId}.jsonl`]));
  },
  indexPath: null,
  member: () => Promise.resolve(null),
};

type OwnFormat = Exclude<ExportFormat, WritableFormatName>;

const layouts: Readonly<Record<OwnFormat, ExportLayout>> = {
  jsonl: openclawLayout,
  openclaw: openclawLayout,
  pi: { path: piPath, indexPath: null, member: () => Promise.resolve(null) },
  "otlp-json": {
    path: ({ state, directory }) => joinPath(directory, state.ref.agentId, `${state.sessionId}.otlp.jsonl`),
    indexPath: null,
    member: () => Promise.resolve(null),
  },
  claw0: {
    path: ({ state, directory }) =>
      joinPath(directory, "agents", state.ref.agentId, "sessions", `${state.sessionId}.jsonl`),
    indexPath: (directory, agentId) => joinPath(directory, "agents", agentId, "sessions.json"),
    member: (_store, state) => Promise.resolve(claw0Member(state)),
  },
};

/** claw0's index is keyed by session id and holds times in seconds. */
function claw0Member({ sessionId, entry, createdAtMs, updatedAtMs, messageCount }: SessionState): IndexMember {
  const label = typeof entry.label === "string" ? entry.label : "";
  const times = { created_at: createdAtMs / 1000, last_active: updatedAtMs / 1000 };
  return [sessionId, { label, ...times, message_count: messageCount }];
}

/** These errors concern one session; the export continues with the others. */
const ofOneSession = [
  "STORE_CORRUPT",
  "STORE_IO",
  "CODEC_FAILED",
  "RECORD_INVALID",
  "RECORD_FROM_NEWER_VERSION",
  "SESSION_NOT_FOUND",
  "PATH_UNSAFE",
] as const;

/**
 * Keeps each agent's index entries in scratch storage until its sessions are written, because they may exceed memory.
 */
class AgentIndexes implements Disposable {
  readonly all = new Map<string, ScratchMap>();

  /** An agent with only archived sessions gets an index too. */
  add(agentId: string, member: IndexMember | null): void {
    const entries = this.all.get(agentId) ?? createScratchMap();
    this.all.set(agentId, entries);
    if (member !== null) entries.set(member[0], JSON.stringify(member[1]));
  }

  [Symbol.dispose](): void {
    for (const entries of this.all.values()) entries[Symbol.dispose]();
  }
}

async function writeIndex(path: string, entries: ScratchMap, options: ExportFileOptions): Promise<ExportedFile> {
  const { sizeBytes } = await writeNewFile(path, indexPieces(entries), options.random ?? systemRandom);
  return { path, key: null, sessionId: null, records: 0, sizeBytes, remarks: [], error: null };
}

async function* indexPieces(entries: ScratchMap): AsyncGenerator<Uint8Array> {
  let text = "";
  for (const piece of sessionsJsonPieces(parsed(entries))) {
    text += piece;
    if (text.length < pieceLength) continue;
    yield Buffer.from(text);
    text = "";
  }
  yield Buffer.from(text);
}

const pieceLength = 64 * 1024;

function* parsed(entries: ScratchMap): Generator<readonly [string, unknown]> {
  for (const [key, text] of entries.entries()) yield [key, JSON.parse(text) as unknown];
}

/**
 * Prefers the name of the source file, because only that name may state the topic. Otherwise the session's key decides.
 */
function openclawPath(state: SessionState, directory: string): string {
  const named = sourceName(state.entry);
  const { sessionId, ref } = state;
  const name = transcriptFileNameOf({ sessionId, key: ref.key, topicId: named?.topicId ?? null });
  const folder = joinPath(directory, "agents", state.ref.agentId, "sessions");
  if (!state.archived) return joinPath(folder, name);
  const { atMs, why } = putAside(state, named);
  return joinPath(folder, archiveFileName(name, why, new Date(atMs).toISOString()));
}

/** Returns null for a session that was created here or imported from another program. */
function sourceName(entry: SessionEntry): SessionFileName | null {
  const receipt = receiptOf(entry);
  if (receipt === null) return null;
  const names = [receipt.path, receipt.sessionFile ?? ""].map((path) =>
    classifySessionFile(path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1)),
  );
  return names.find(({ topicId }) => topicId !== null) ?? names[0] ?? null;
}

/** The later archiving counts, here or in the source. Without either, the last activity is used. */
function putAside(
  { entry, updatedAtMs }: SessionState,
  named: SessionFileName | null,
): { readonly atMs: number; readonly why: "reset" | "deleted" } {
  const there = Date.parse(receiptOf(entry)?.archivedAt ?? "");
  const here = archivedAtMs(entry);
  const isOurs = here !== null && !(there >= here);
  if (isOurs) return { atMs: here, why: "reset" };
  const why = named?.kind === "deleted-archive" ? "deleted" : "reset";
  return { atMs: Number.isNaN(there) ? updatedAtMs : there, why };
}

/**
 * Writes the entry in the form of OpenClaw's index: with its side blobs and the file's name, without the import
 * receipt.
 */
async function exportedEntry(store: SessionStore, state: SessionState, path: string): Promise<SessionEntry> {
  const { importedFrom: _receipt, blobsAside: _places, ...entry } = state.entry;
  const blobs = await loadEntryBlobs(store, state);
  return { ...entry, ...blobs, sessionId: state.sessionId, updatedAt: state.updatedAtMs, sessionFile: path };
}

/** pi names its files `--<cwd>--/<time>_<id>.jsonl`. */
async function piPath({ store, state, directory, options }: ExportPlace): Promise<string> {
  const { cwd, timestamp } = await headerOf(store, state, options);
  const { sessionId, ref } = state;
  return piFilePath(directory, { cwd, atMs: Date.parse(timestamp), sessionId, key: ref.key });
}

/** Returns the path of a session below pi's folder of sessions. @throws {ThroughlineError} PATH_UNSAFE */
export function piFilePath(
  directory: string,
  session: { readonly cwd: string; readonly atMs: number; readonly sessionId: string; readonly key: string },
): string {
  const { cwd, atMs, sessionId, key } = session;
  const folder = `--${cwd.replace(/^[/\\]/, "").replace(/[/\\:]/g, "-")}--`;
  if (folder.includes("\0") || Buffer.byteLength(folder) > 255) {
    throw new ThroughlineError("PATH_UNSAFE", `The working directory of ${JSON.stringify(key)} makes no folder name.`, {
      outcome: "not-applied",
    });
  }
  return joinPath(directory, folder, `${new Date(atMs).toISOString().replace(/[:.]/g, "-")}_${sessionId}.jsonl`);
}

async function headerOf(
  store: SessionStore,
  state: SessionState,
  options: ExportOptions,
): Promise<{ readonly cwd: string; readonly timestamp: string }> {
  const created = new Date(state.createdAtMs).toISOString();
  for await (const page of store.read(state.ref, { limit: 1 })) {
    const record = page.records[0]?.record;
    if (record?.type !== "session") break;
    const { cwd, timestamp } = record;
    const atMs = Date.parse(timestamp);
    return {
      cwd: workingDirectoryOf(cwd, state.entry, options),
      timestamp: Number.isFinite(atMs) ? new Date(atMs).toISOString() : created,
    };
  }
  return { cwd: workingDirectoryOf(null, state.entry, options), timestamp: created };
}
