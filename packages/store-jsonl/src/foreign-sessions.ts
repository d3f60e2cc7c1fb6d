import { type Finding, hasErrorCode, sessionRef } from "@throughline/core";
import { isSessionId, ownEntry } from "@throughline/core/internal";
import {
  classifySessionFile,
  detachEnvelope,
  transcriptFileNameOf,
  type TranscriptHeader,
} from "@throughline/openclaw-format/internal";
import { createTranscriptReader, decodeLine } from "@throughline/openclaw-format";
import type { AgentFolder } from "./agent-folder.ts";
import type { EntriesLog } from "./entries-log.ts";
import { archivedFrom } from "./recover-entries.ts";
import { openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { isNamed, type Fields } from "./merge-entry.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreEnvelope } from "./store-envelope.ts";
import { unreadableFinding } from "./transcript-findings.ts";

export interface ForeignSearch {
  readonly files: Files;
  readonly folder: AgentFolder;
  readonly log: EntriesLog;
  /** sessions.json, by key. */
  readonly entries: ReadonlyMap<string, unknown>;
  /** What this store wrote into sessions.json last: all there is where that is gone. */
  readonly written: ReadonlyMap<string, unknown>;
  /** Rows that are taken over already: they come from what is left of a log that is gone. */
  readonly left: readonly SessionRow[];
  /** There is no entries log, or part of it cannot be read: what it does not name may have been in it. */
  readonly isLogLost: boolean;
  readonly agentId: string;
  readonly nowMs: number;
  readonly onFinding: (finding: Finding) => void;
}

export interface FoundSession {
  readonly row: SessionRow;
  /** `copied`: of a session of ours, as somebody else has kept it. `lost`: there must have been one, and it is nowhere. */
  readonly entry: "whole" | "copied" | "lost";
}

export interface ForeignSessions {
  readonly found: readonly FoundSession[];
  /** There are transcripts that no session could be made of. */
  readonly hasStrays: boolean;
  /** How many names were looked at. */
  readonly nameCount: number;
}

const headerBytes = 65_536;

/**
 * Whether the file is the rest of an interrupted creation: our header and nothing behind it, or not even that. Such a
 * session was never acknowledged and has no messages.
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
    const text = Buffer.from(bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 1)).toString();
    return bytes.length < maxOwnHeaderBytes && (ownHeaderStart.startsWith(text) || text.startsWith(ownHeaderStart));
  } finally {
    files.close(handle);
  }
}

const ownHeaderStart = '{"type":"session","version":3,"id":"';
const maxOwnHeaderBytes = 4096;

/** Rows for transcripts the log does not name: other programs made them, or the log is not what it was. */
export function findForeignSessions(search: ForeignSearch): ForeignSessions {
  const { files, folder, log, left, isLogLost } = search;
  if (files.facts(folder.sessions) === null) return { found: [], hasStrays: false, nameCount: 0 };
  const present = withFileErrors(folder.sessions, () => files.names(folder.sessions));
  const known = log.fileNames();
  const ofLeft = new Set(left.flatMap(({ fileName, formerFileName = fileName }) => [fileName, formerFileName]));
  const isKnown = (name: string): boolean =>
    known.has(name) || ofLeft.has(name) || log.removed.has(name.slice(0, -".jsonl".length));
  const isTranscript = (name: string): boolean => name.endsWith(".jsonl") || (isLogLost && archivedFrom(name) !== null);
  const names = present.filter((name) => isTranscript(name) && !isKnown(name));
  const nameCount = present.length;
  const taken: Taken = {
    ids: new Set(left.map(({ sessionId }) => sessionId.toLowerCase())),
    keys: new Set(left.flatMap(({ key, isArchived }) => (isArchived ? [] : [key]))),
  };
  const isPresent = new Set(present);
  const places: Places = {
    byFile: byFileName(search.entries, isPresent),
    writtenByFile: byFileName(search.written, isPresent),
  };
  const found: FoundSession[] = [];
  let hasStrays = false;
  // A topic has the session id of its conversation, which keeps it.
  const isTopic = (name: string): boolean => classifySessionFile(name).topicId !== null;
  const [topics, others] = [names.filter(isTopic), names.filter((name) => !isTopic(name))];
  for (const name of [...others.toSorted(), ...topics.toSorted()]) {
    const facts = files.facts(folder.session(name));
    if (facts?.kind !== "file") continue;
    // Another name of it may be anywhere. It is looked at again: that name may go, and nothing changes here.
    hasStrays ||= facts.names > 1;
    if (facts.names > 1) continue;
    const session = adoptReadable(search, name, places, taken);
    hasStrays ||= session === null;
    if (session === null) continue;
    taken.ids.add(session.row.sessionId.toLowerCase());
    if (!session.row.isArchived) taken.keys.add(session.row.key);
    found.push(session);
  }
  return { found: [...found, ...awaitedSessions(search, isPresent, taken)], hasStrays, nameCount };
}

/**
 * Sessions of which there is an entry and no transcript yet. OpenClaw writes the entry when a chat gets its settings, and the
 * transcript with the first message: until then the entry is all there is to obey. What this store wrote is not among them: a
 * key of its own that the log does not have was removed here.
 */
function awaitedSessions(search: ForeignSearch, present: ReadonlySet<string>, taken: Taken): readonly FoundSession[] {
  const { agentId, entries, folder, log, nowMs, written } = search;
  // A topic has the session id of its conversation, which keeps it.
  const isTopic = ([key]: Named): boolean => transcriptFileNameOf({ sessionId: "x", key }) !== "x.jsonl";
  const [topics, others] = [[...entries].filter(isTopic), [...entries].filter((named) => !isTopic(named))];
  return [...others, ...topics].flatMap(([key, entry]): FoundSession[] => {
    const sessionId = fieldText(entry, "sessionId");
    if (sessionId === null || !isSessionId(sessionId) || fieldText(written.get(key), "sessionId") === sessionId)
      return [];
    const isTaken = taken.keys.has(key) || log.idOf(key) !== null || taken.ids.has(sessionId.toLowerCase());
    if (isTaken || log.twinOf(sessionId) !== null || log.removed.has(sessionId) || !isWhole(key, agentId)) return [];
    const stated = fieldText(entry, "sessionFile")?.split(/[/\\]/).at(-1) ?? "";
    const isStated = classifySessionFile(stated).sessionId === sessionId;
    const fileName = isStated ? stated : transcriptFileNameOf({ sessionId, key });
    if (present.has(fileName) || !fileName.endsWith(".jsonl")) return [];
    taken.ids.add(sessionId.toLowerCase());
    taken.keys.add(key);
    const own = ownEntry({ ...withoutFile(entry as Fields, folder.session(fileName)), sessionId });
    const updatedAtMs = typeof own.updatedAt === "number" ? Math.min(own.updatedAt, nowMs) : 0;
    const times = { createdAtMs: nowMs, updatedAtMs };
    const row = { sessionId, key, fileName, entry: own, revision: 1, ...times, isArchived: false };
    return [{ row: { ...row, isUnflushed: true }, entry: "whole" }];
  });
}

interface Taken {
  readonly ids: Set<string>;
  readonly keys: Set<string>;
}

type Named = readonly [key: string, entry: unknown];

/** Entries by the name of their transcript. */
interface Places {
  readonly byFile: ReadonlyMap<string, Named>;
  readonly writtenByFile: ReadonlyMap<string, Named>;
}

/**
 * `sessionFile` may be a path of another machine: its last part counts. If it is that of another session and this
 * session's file exists, OpenClaw has reset a session and kept the field. Without the field the key of a topic names its file.
 */
function byFileName(entries: ReadonlyMap<string, unknown>, present: ReadonlySet<string>): ReadonlyMap<string, Named> {
  const found = new Map<string, Named>();
  const plain = new Map<string, Named>();
  for (const [key, entry] of entries) {
    const sessionFile = fieldText(entry, "sessionFile");
    const sessionId = fieldText(entry, "sessionId");
    const own = sessionId === null ? undefined : `${sessionId}.jsonl`;
    const topic = sessionId !== null && isSessionId(sessionId) ? transcriptFileNameOf({ sessionId, key }) : own;
    const stated = sessionFile?.split(/[/\\]/).at(-1);
    const isOthers = stated !== undefined && classifySessionFile(stated).sessionId !== sessionId;
    const made = topic !== undefined && present.has(topic) ? topic : own;
    const name = stated === undefined || (isOthers && made !== undefined && present.has(made)) ? made : stated;
    // A topic without a transcript of its own has the session id of its conversation, whose entry goes before it.
    const names = name === own && topic !== own ? plain : found;
    if (name !== undefined && !names.has(name)) names.set(name, [key, entry]);
  }
  return new Map([...plain, ...found]);
}

/** One file that nobody may read must not hide the others. */
function adoptReadable(search: ForeignSearch, name: string, places: Places, taken: Taken): FoundSession | null {
  try {
    return adopt(search, name, places, taken);
  } catch (error) {
    const finding = unreadableFinding(error, search.folder.session(name), places.byFile.get(name)?.[0] ?? null);
    if (finding === null) throw error;
    search.onFinding(finding);
    return null;
  }
}

function adopt(search: ForeignSearch, fileName: string, places: Places, taken: Taken): FoundSession | null {
  const { agentId, nowMs, log, isLogLost } = search;
  const isIdFree = (id: string): boolean => !taken.ids.has(id.toLowerCase()) && log.twinOf(id) === null;
  const isKeyFree = (one: string): boolean => !taken.keys.has(one) && log.idOf(one) === null;
  const activeName = archivedFrom(fileName) ?? fileName;
  const isArchived = activeName !== fileName;
  const base = activeName.slice(0, -".jsonl".length);
  const { header, envelope, isAlone } = readHeader(search, fileName);
  if (isArchived && envelope === null) return null;
  const isOurs = isLogLost && envelope !== null;
  const named = places.byFile.get(fileName) ?? (isOurs ? places.writtenByFile.get(fileName) : undefined);
  if (named === undefined && isUnfinished(search.files, search.folder.session(fileName))) return null;
  const wanted = [
    fieldText(named?.[1], "sessionId"),
    // The name of a topic's transcript has more in it than the id.
    envelope === null ? null : idInBoth(header, activeName),
    base,
    header?.sessionId ?? null,
    base.replace(/[^A-Za-z0-9._-]+/g, "-"),
  ];
  const isFitId = (id: string | null): id is string => id !== null && isSessionId(id) && isIdFree(id);
  const sessionId = wanted.find(isFitId) ?? (isArchived ? null : numberedId(search, base, isFitId));
  if (sessionId === null) return null;
  // A reset that died before its commit: nothing is in the file, and its key still has its session.
  if (isAlone && header?.key !== null && header?.key !== undefined && !isKeyFree(header.key)) return null;
  const ofTopic = topicKey(activeName, places, log);
  const keys = [named?.[0], header?.key, ofTopic, `agent:${agentId}:import:direct:${sessionId}`];
  const isFit = (one: string): boolean => (isArchived || isKeyFree(one)) && belongsTo(one, agentId);
  const key = keys.find((one) => one !== undefined && one !== null && isFit(one));
  if (key === undefined || key === null) return null;
  const createdAtMs = header?.timestamp === null || header === null ? Number.NaN : Date.parse(header.timestamp);
  const { forkedFrom, origins } = envelope ?? {};
  const entry =
    named === undefined || typeof named[1] !== "object"
      ? { sessionId, ...(forkedFrom === undefined ? {} : { forkedFrom }) }
      : ownEntry({ ...withoutFile(named[1] as Fields, search.folder.session(activeName)), sessionId });
  const row = {
    sessionId,
    key,
    fileName,
    entry,
    revision: 1,
    createdAtMs: Number.isFinite(createdAtMs) ? createdAtMs : nowMs,
    updatedAtMs: typeof entry.updatedAt === "number" ? Math.min(entry.updatedAt, nowMs) : 0,
    isArchived,
    ...(origins === undefined ? {} : { origins }),
  };
  return { row, entry: !isOurs ? "whole" : named === undefined ? "lost" : "copied" };
}

/**
 * An id for a transcript whose own names are taken, as of two that differ by upper and lower case only, or are no ids. Null
 * where the session that has its name lacks its transcript: then it may be that one, in the middle of a change.
 */
function numberedId(
  { files, folder, log }: ForeignSearch,
  base: string,
  isFitId: (id: string) => boolean,
): string | null {
  const twin = isSessionId(base) ? log.twinOf(base) : null;
  const row = twin === null ? null : log.row(twin);
  if (row !== null && files.facts(folder.session(row.fileName))?.kind !== "file") return null;
  const stem =
    base
      .match(/[A-Za-z0-9]+/g)
      ?.join("-")
      .slice(0, longestStem) ?? "transcript";
  let number = 2;
  while (!isFitId(`${stem}-${number}`)) number++;
  return `${stem}-${number}`;
}

const longestStem = 100;

function fieldText(entry: unknown, field: string): string | null {
  const value = typeof entry === "object" && entry !== null ? (entry as Record<string, unknown>)[field] : null;
  return typeof value === "string" && value !== "" ? value : null;
}

/** A path that leads to the transcript is in the view, and one to another transcript is that of an earlier session. */
function withoutFile(fields: Fields, path: string): Fields {
  const { sessionFile, ...others } = fields;
  return sessionFile === path || !isNamed(sessionFile, { fileName: path.split("/").at(-1) ?? "" }) ? others : fields;
}

/** The key of a topic that has no entry: that of its conversation, and the topic. Null where the conversation is not known. */
function topicKey(fileName: string, { byFile }: Places, log: EntriesLog): string | null {
  const { sessionId, topicId } = classifySessionFile(fileName);
  if (sessionId === null || topicId === null) return null;
  const known = log.twinOf(sessionId);
  const key = byFile.get(`${sessionId}.jsonl`)?.[0] ?? (known === null ? undefined : log.row(known)?.key);
  return key === undefined ? null : `${key}:topic:${topicId}`;
}

function idInBoth(header: TranscriptHeader | null, fileName: string): string | null {
  const { sessionId, topicId } = classifySessionFile(fileName);
  return topicId !== null && sessionId === header?.sessionId ? sessionId : null;
}

function belongsTo(key: string, agentId: string): boolean {
  try {
    return sessionRef({ key, agentId }).agentId === agentId;
  } catch (error) {
    if (hasErrorCode(error, "KEY_INVALID", "KEY_AGENT_MISMATCH")) return false;
    throw error;
  }
}

/** A key in its long form: a short one may be anything that somebody put into the file. */
function isWhole(key: string, agentId: string): boolean {
  return key.startsWith("agent:") && belongsTo(key, agentId);
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
