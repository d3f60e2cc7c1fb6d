import {
  ThroughlineError,
  type RandomSource,
  type SessionEntry,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { systemRandom } from "@throughline/core/node";
import { archiveFileName, joinPath, transcriptFileName, writeSessionsJson } from "@throughline/openclaw-format";
import { exportSession } from "./export-session.ts";
import type { ExportOptions, ExportRemark } from "./export-types.ts";
import { assertNoFile, writeNewFile } from "./node/target-files.ts";

/** A file that was written. */
export interface ExportedFile {
  readonly path: string;
  /** Null for an index. */
  readonly key: string | null;
  readonly sessionId: string | null;
  readonly records: number;
  readonly sizeBytes: number;
  readonly remarks: readonly ExportRemark[];
}

export interface ExportFileOptions extends ExportOptions {
  /** For temporary names. @default the system's */
  readonly random?: RandomSource;
}

/**
 * Writes one session to a new file, mode 0600: complete or not at all.
 * @throws {ThroughlineError} EXPORT_EXISTS, SESSION_NOT_FOUND
 */
export async function exportToFile(
  store: SessionStore,
  ref: SessionRef,
  path: string,
  options: ExportFileOptions,
): Promise<ExportedFile> {
  await assertNoFile(path);
  const state = await store.load(ref);
  const remarks: ExportRemark[] = [];
  const onRemark = (remark: ExportRemark): void => {
    remarks.push(remark);
    options.onRemark?.(remark);
  };
  const chunks = exportSession(store, ref, { ...options, onRemark });
  const { sizeBytes } = await writeNewFile(path, chunks, options.random ?? systemRandom);
  const leftOut = remarks.filter(({ what }) => what === "left-out").length;
  return {
    path,
    key: ref.key,
    sessionId: state?.sessionId ?? null,
    records: (state?.head.lastSeq ?? 0) - leftOut,
    sizeBytes,
    remarks,
  };
}

export interface ExportAllOptions extends ExportFileOptions {
  /** @default "" */
  readonly namespace?: string;
  /** @default all agents */
  readonly agentId?: string;
  /** Also what was archived, under the names OpenClaw gives to what it put aside. @default false */
  readonly archived?: boolean;
}

/**
 * Writes all sessions below a directory: for `jsonl` and `openclaw` as `agents/<agent>/sessions/` with a sessions.json
 * that holds every field of the entries, for `pi` as a folder for each working directory. One result a file.
 * @throws {ThroughlineError} EXPORT_EXISTS; what was written before it stays
 */
export async function* exportAll(
  store: SessionStore,
  directory: string,
  options: ExportAllOptions,
): AsyncGenerator<ExportedFile> {
  const { agentId, namespace = "", archived = false } = options;
  const entries = new Map<string, (readonly [key: string, entry: SessionEntry])[]>();
  for await (const state of sessionsOf(store, { namespace, agentId, archived })) {
    const path = options.to === "pi" ? await piPath(store, state, directory) : openclawPath(state, directory);
    if (options.to !== "pi") await assertNoFile(indexPath(directory, state.ref.agentId));
    yield await exportToFile(store, state.ref, path, options);
    const listed = entries.get(state.ref.agentId) ?? [];
    entries.set(state.ref.agentId, listed);
    if (!state.archived) listed.push([state.ref.key, exportedEntry(state, path)]);
  }
  if (options.to === "pi") return;
  for (const [agent, listed] of entries) yield await writeIndex(indexPath(directory, agent), listed, options);
}

async function* sessionsOf(
  store: SessionStore,
  query: { readonly namespace: string; readonly agentId: string | undefined; readonly archived: boolean },
): AsyncGenerator<SessionState> {
  const { namespace, agentId } = query;
  const state = query.archived ? "any" : "active";
  let cursor: string | null = null;
  do {
    const page = await store.list({
      namespace,
      state,
      sort: "key",
      limit: 200,
      ...(agentId === undefined ? {} : { agentId }),
      ...(cursor === null ? {} : { cursor }),
    });
    yield* page.sessions;
    cursor = page.nextCursor;
  } while (cursor !== null);
}

async function writeIndex(
  path: string,
  entries: readonly (readonly [string, SessionEntry])[],
  options: ExportFileOptions,
): Promise<ExportedFile> {
  const bytes = Buffer.from(writeSessionsJson(entries));
  const { sizeBytes } = await writeNewFile(path, piece(bytes), options.random ?? systemRandom);
  return { path, key: null, sessionId: null, records: 0, sizeBytes, remarks: [] };
}

async function* piece(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function indexPath(directory: string, agentId: string): string {
  return joinPath(directory, "agents", agentId, "sessions", "sessions.json");
}

function openclawPath(state: SessionState, directory: string): string {
  const name = transcriptFileName(state.sessionId);
  const iso = new Date(state.updatedAtMs).toISOString();
  return joinPath(
    directory,
    "agents",
    state.ref.agentId,
    "sessions",
    state.archived ? archiveFileName(name, "reset", iso) : name,
  );
}

/** The entry as an index of its own place has it: without where we got it from, with the file's name. */
function exportedEntry(state: SessionState, path: string): SessionEntry {
  const { importedFrom: _receipt, ...entry } = state.entry;
  return { ...entry, sessionId: state.sessionId, updatedAt: state.updatedAtMs, sessionFile: path };
}

/** `--<cwd>--/<time>_<id>.jsonl`, as pi names its files. */
async function piPath(store: SessionStore, state: SessionState, directory: string): Promise<string> {
  const { cwd, timestamp } = await headerOf(store, state);
  const folder = `--${cwd.replace(/^[/\\]/, "").replace(/[/\\:]/g, "-")}--`;
  if (folder.includes("\0") || Buffer.byteLength(folder) > 255) {
    throw new ThroughlineError(
      "PATH_UNSAFE",
      `The working directory of ${JSON.stringify(state.ref.key)} makes no folder name.`,
      { outcome: "not-applied" },
    );
  }
  return joinPath(directory, folder, `${timestamp.replace(/[:.]/g, "-")}_${state.sessionId}.jsonl`);
}

async function headerOf(
  store: SessionStore,
  state: SessionState,
): Promise<{ readonly cwd: string; readonly timestamp: string }> {
  const created = new Date(state.createdAtMs).toISOString();
  for await (const page of store.read(state.ref, { limit: 1 })) {
    const record = page.records[0]?.record;
    if (record?.type !== "session") break;
    const { cwd, timestamp } = record;
    const atMs = Date.parse(timestamp);
    return {
      cwd: typeof cwd === "string" ? cwd : "",
      timestamp: Number.isFinite(atMs) ? new Date(atMs).toISOString() : created,
    };
  }
  return { cwd: "", timestamp: created };
}
