import { hasErrorCode, sessionRef } from "@throughline/core";
import { isSessionId } from "@throughline/core/keys";
import { ownEntry } from "@throughline/core/store";
import {
  createTranscriptReader,
  decodeLine,
  detachEnvelope,
  type TranscriptHeader,
} from "@throughline/openclaw-format";
import type { AgentFolder } from "./agent-folder.ts";
import type { EntriesLog } from "./entries-log.ts";
import { openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreEnvelope } from "./stored-line.ts";

export interface ForeignSearch {
  readonly files: Files;
  readonly folder: AgentFolder;
  readonly log: EntriesLog;
  /** sessions.json, by key. */
  readonly entries: ReadonlyMap<string, unknown>;
  readonly agentId: string;
  readonly nowMs: number;
}

export interface ForeignSessions {
  readonly rows: readonly SessionRow[];
  /** There are transcripts that no session could be made of. */
  readonly hasStrays: boolean;
}

const headerBytes = 65_536;

/**
 * Whether the file is what a session leaves whose making was cut off: our header and nothing behind it, or not even
 * that. Nobody was told of such a session, and nothing was said in it.
 */
export function isUnfinished(files: Files, path: string): boolean {
  const handle = openIfThere(files, path);
  if (handle === null) return false;
  try {
    const bytes = withFileErrors(path, () => readRange(files, handle, 0, headerBytes));
    const end = bytes.indexOf(0x0a);
    if (end === -1 && bytes.length < headerBytes && bytes.every((byte) => byte === 0)) return true;
    if (end !== -1 && end < bytes.length - 1) return false;
    const line = decodeLine(end === -1 ? bytes : bytes.subarray(0, end));
    if (end !== -1) return typeof line === "string" && detachEnvelope(line).envelope?.seq === 0;
    // The beginning of a header as we write it, or such a beginning with nothing where the rest belongs.
    const text = Buffer.from(bytes).toString().replace(/\0+$/, "");
    return bytes.length < maxOwnHeaderBytes && (ownHeaderStart.startsWith(text) || text.startsWith(ownHeaderStart));
  } finally {
    files.close(handle);
  }
}

const ownHeaderStart = '{"type":"session","version":3,"id":"';
const maxOwnHeaderBytes = 4096;

/** Rows for transcripts the log does not name: other programs made them. */
export function findForeignSessions(search: ForeignSearch): ForeignSessions {
  const { files, folder, log } = search;
  if (files.facts(folder.sessions) === null) return { rows: [], hasStrays: false };
  const names = withFileErrors(folder.sessions, () => files.names(folder.sessions)).filter((name) =>
    name.endsWith(".jsonl"),
  );
  const known = log.fileNames();
  const taken: Taken = { ids: new Set(), keys: new Set() };
  const rows: SessionRow[] = [];
  let hasStrays = false;
  for (const name of names.toSorted()) {
    if (
      known.has(name) ||
      log.removed.has(name.slice(0, -".jsonl".length)) ||
      files.facts(folder.session(name))?.kind !== "file"
    )
      continue;
    const row = adopt(search, name, taken);
    hasStrays ||= row === null;
    if (row === null) continue;
    taken.ids.add(row.sessionId.toLowerCase());
    taken.keys.add(row.key);
    rows.push(row);
  }
  return { rows, hasStrays };
}

interface Taken {
  readonly ids: Set<string>;
  readonly keys: Set<string>;
}

function adopt(search: ForeignSearch, fileName: string, taken: Taken): SessionRow | null {
  const { entries, agentId, nowMs, log } = search;
  const isIdFree = (id: string): boolean => !taken.ids.has(id.toLowerCase()) && log.twinOf(id) === null;
  const isKeyFree = (one: string): boolean => !taken.keys.has(one) && log.idOf(one) === null;
  const base = fileName.slice(0, -".jsonl".length);
  const { header, envelope, isAlone } = readHeader(search, fileName);
  const named = [...entries].find(([, entry]) => namesFile(entry, base, fileName));
  if (named === undefined && isUnfinished(search.files, search.folder.session(fileName))) return null;
  const wanted = [
    fieldText(named?.[1], "sessionId"),
    base,
    header?.sessionId ?? null,
    base.replace(/[^A-Za-z0-9._-]+/g, "-"),
  ];
  const sessionId = wanted.find((id) => id !== null && isSessionId(id) && isIdFree(id));
  if (sessionId === undefined || sessionId === null) return null;
  // A reset that died before its commit: nothing is in the file, and its key still has its session.
  if (isAlone && header?.key !== null && header?.key !== undefined && !isKeyFree(header.key)) return null;
  const keys = [named?.[0], header?.key, `agent:${agentId}:import:direct:${sessionId}`];
  const key = keys.find((one) => one !== undefined && one !== null && isKeyFree(one) && belongsTo(one, agentId));
  if (key === undefined || key === null) return null;
  const createdAtMs = header?.timestamp === null || header === null ? Number.NaN : Date.parse(header.timestamp);
  const { forkedFrom, origins } = envelope ?? {};
  const entry =
    named === undefined || typeof named[1] !== "object"
      ? { sessionId, ...(forkedFrom === undefined ? {} : { forkedFrom }) }
      : ownEntry({ ...named[1], sessionId });
  return {
    sessionId,
    key,
    fileName,
    entry,
    revision: 1,
    createdAtMs: Number.isFinite(createdAtMs) ? createdAtMs : nowMs,
    updatedAtMs: typeof entry.updatedAt === "number" ? Math.min(entry.updatedAt, nowMs) : 0,
    isArchived: false,
    ...(origins === undefined ? {} : { origins }),
  };
}

/** `sessionFile` may be a path of another machine: its last part counts. */
function namesFile(entry: unknown, base: string, fileName: string): boolean {
  const sessionFile = fieldText(entry, "sessionFile");
  if (sessionFile !== null) return sessionFile.split(/[/\\]/).at(-1) === fileName;
  return fieldText(entry, "sessionId") === base;
}

function fieldText(entry: unknown, field: string): string | null {
  const value = typeof entry === "object" && entry !== null ? (entry as Record<string, unknown>)[field] : null;
  return typeof value === "string" && value !== "" ? value : null;
}

function belongsTo(key: string, agentId: string): boolean {
  try {
    return sessionRef({ key, agentId }).agentId === agentId;
  } catch (error) {
    if (hasErrorCode(error, "KEY_INVALID", "KEY_AGENT_MISMATCH")) return false;
    throw error;
  }
}

interface FileHeader {
  readonly header: TranscriptHeader | null;
  /** Of a header that is ours. */
  readonly envelope: StoreEnvelope | null;
  /** True when nothing follows the header. */
  readonly isAlone: boolean;
}

function readHeader({ files, folder }: ForeignSearch, fileName: string): FileHeader {
  const path = folder.session(fileName);
  const handle = openIfThere(files, path);
  if (handle === null) return { header: null, envelope: null, isAlone: false };
  try {
    const bytes = withFileErrors(path, () => readRange(files, handle, 0, headerBytes));
    const end = bytes.indexOf(0x0a);
    const reader = createTranscriptReader();
    const line = decodeLine(end === -1 ? bytes : bytes.subarray(0, end));
    reader.push(line, { line: 1, byteOffset: 0 });
    const envelope = typeof line === "string" ? detachEnvelope(line).envelope : null;
    const isOurs = envelope?.seq === 0;
    return { header: reader.header, envelope: isOurs ? envelope : null, isAlone: end === bytes.length - 1 };
  } finally {
    files.close(handle);
  }
}
