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
  readonly entries: ReadonlyMap<string, unknown>;
  /**
   * Holds the entries that this store last wrote to sessions.json. They are the only source when sessions.json is gone.
   */
  readonly written: ReadonlyMap<string, unknown>;
  readonly left: readonly SessionRow[];
  /** Is true when the entries log is missing or partly unreadable, so it may have named more sessions. */
  readonly isLogLost: boolean;
  readonly agentId: string;
  readonly nowMs: number;
  readonly onFinding: (finding: Finding) => void;
}

export interface FoundSession {
  readonly row: SessionRow;
  /**
   * `copied`: the entry comes from another copy than the lost log. `lost`: the session had an entry that no copy has.
   */
  readonly entry: "whole" | "copied" | "lost";
}

export interface ForeignSessions {
  readonly found: readonly FoundSession[];
  /** Is true when a transcript could not become a session. */
  readonly hasStrays: boolean;
  /** Holds every name in the sessions folder. */
  readonly present: ReadonlySet<string>;
}

const headerBytes = 65_536;

/**
 * Tests whether the file is left from an interrupted creation. It then holds only the header of this store, or part of
 * it. Such a session was never acknowledged and has no messages.
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
    // The text is a prefix of the store's header, also with zeros behind it as after a power cut.
    const text = Buffer.from(bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 1)).toString();
    return bytes.length < maxOwnHeaderBytes && (ownHeaderStart.startsWith(text) || text.startsWith(ownHeaderStart));
  } finally {
    files.close(handle);
  }
}

const ownHeaderStart = '{"type":"session","version":3,"id":"';
const maxOwnHeaderBytes = 4096;

export function findForeignSessions(search: ForeignSearch): ForeignSessions {
  const { files, folder, log, left, isLogLost } = search;
  if (files.facts(folder.sessions) === null) return { found: [], hasStrays: false, present: new Set() };
  const present = withFileErrors(folder.sessions, () => files.names(folder.sessions));
  const known = log.image.fileNames();
  const ofLeft = new Set(left.flatMap(({ fileName, formerFileName = fileName }) => [fileName, formerFileName]));
  const isKnown = (name: string): boolean =>
    known.has(name) || ofLeft.has(name) || log.removed.has(name.slice(0, -".jsonl".length));
  const isTranscript = (name: string): boolean => name.endsWith(".jsonl") || (isLogLost && archivedFrom(name) !== null);
  const names = present.filter((name) => isTranscript(name) && !isKnown(name));
  const taken: Taken = {
    ids: new Set(left.map(({ sessionId }) => sessionId.toLowerCase())),
    keys: new Set(left.flatMap(({ key, isArchived }) => (isArchived ? [] : [key]))),
  };
  const isPresent = new Set(present);
  // Going through all entries takes a while, and most often no file is new.
  const entriesByFile = (entries: ReadonlyMap<string, unknown>): ReadonlyMap<string, Named> =>
    names.length === 0 ? new Map() : byFileName(entries, isPresent);
  const places: Places = { byFile: entriesByFile(search.entries), writtenByFile: entriesByFile(search.written) };
  const found: FoundSession[] = [];
  let hasStrays = false;
  // A topic has the session id of its conversation. Conversations come first, so that they keep the id.
  const isTopic = (name: string): boolean => classifySessionFile(name).topicId !== null;
  const [topics, others] = [names.filter(isTopic), names.filter((name) => !isTopic(name))];
  for (const name of [...others.toSorted(), ...topics.toSorted()]) {
    const facts = files.facts(folder.session(name));
    if (facts?.kind !== "file") continue;
    // The second name may lie outside the folder. It is checked again later, because its removal does not change this
    // folder.
    hasStrays ||= facts.names > 1;
    if (facts.names > 1) continue;
    const session = adoptReadable(search, name, places, taken);
    hasStrays ||= session === null;
    if (session === null) continue;
    taken.ids.add(session.row.sessionId.toLowerCase());
    if (!session.row.isArchived) taken.keys.add(session.row.key);
    found.push(session);
  }
  return { found: [...found, ...awaitedSessions(search, isPresent, taken)], hasStrays, present: isPresent };
}

/**
 * Creates rows for entries that have no transcript yet. OpenClaw writes the entry when a chat gets its settings, and
 * the transcript with the first message. Until then only the entry states the settings. Keys that this store wrote are
 * skipped: a key that the log lacks was removed here.
 */
function awaitedSessions(search: ForeignSearch, present: ReadonlySet<string>, taken: Taken): readonly FoundSession[] {
  const { agentId, entries, folder, log, nowMs, written } = search;
  // A topic has the session id of its conversation. Conversations come first, so that they keep the id.
  const isTopic = ([key]: Named): boolean => transcriptFileNameOf({ sessionId: "x", key }) !== "x.jsonl";
  const [topics, others] = [[...entries].filter(isTopic), [...entries].filter((named) => !isTopic(named))];
  return [...others, ...topics].flatMap(([key, entry]): FoundSession[] => {
    const sessionId = fieldText(entry, "sessionId");
    if (sessionId === null || !isSessionId(sessionId) || fieldText(written.get(key), "sessionId") === sessionId)
      return [];
    const isTaken = taken.keys.has(key) || log.idOf(key) !== null || taken.ids.has(sessionId.toLowerCase());
    if (isTaken || log.image.twinOf(sessionId) !== null || log.removed.has(sessionId) || !isWhole(key, agentId))
      return [];
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

interface Places {
  readonly byFile: ReadonlyMap<string, Named>;
  readonly writtenByFile: ReadonlyMap<string, Named>;
}

/**
 * Maps file names to entries. `sessionFile` may be a path of another machine, so only its last part counts. If it names
 * another session and this session's file exists, OpenClaw reset the session and kept the field. Without the field, the
 * key of a topic determines the file name.
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
    // A topic without its own transcript shares the id of its conversation. The entry of the conversation takes
    // precedence.
    const names = name === own && topic !== own ? plain : found;
    if (name !== undefined && !names.has(name)) names.set(name, [key, entry]);
  }
  return new Map([...plain, ...found]);
}

/** Reports an unreadable file as a finding, because it must not hide the other sessions. */
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
  const isIdFree = (id: string): boolean => !taken.ids.has(id.toLowerCase()) && log.image.twinOf(id) === null;
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
    // The file name of a topic contains more than the id, so the id is taken from the header if both agree.
    envelope === null ? null : idInBoth(header, activeName),
    base,
    header?.sessionId ?? null,
    base.replace(/[^A-Za-z0-9._-]+/g, "-"),
  ];
  const isFitId = (id: string | null): id is string => id !== null && isSessionId(id) && isIdFree(id);
  const sessionId = wanted.find(isFitId) ?? (isArchived ? null : numberedId(search, base, isFitId));
  if (sessionId === null) return null;
  // A reset died before its commit. The file contains only a header, and the key still has its old session.
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
 * Creates an id for a transcript whose names are invalid, or taken by a session that differs only in case. Returns null
 * when the session with that name lacks its transcript: a rename may be under way.
 */
function numberedId(
  { files, folder, log }: ForeignSearch,
  base: string,
  isFitId: (id: string) => boolean,
): string | null {
  const twin = isSessionId(base) ? log.image.twinOf(base) : null;
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

/**
 * Drops `sessionFile` if it is this path, which sessions.json gets anyway, or names another file, which belongs to an
 * earlier session.
 */
function withoutFile(fields: Fields, path: string): Fields {
  const { sessionFile, ...others } = fields;
  return sessionFile === path || !isNamed(sessionFile, { fileName: path.split("/").at(-1) ?? "" }) ? others : fields;
}

/**
 * Builds the key of a topic without an entry: the key of its conversation, and the topic. Returns null when the
 * conversation is unknown.
 */
function topicKey(fileName: string, { byFile }: Places, log: EntriesLog): string | null {
  const { sessionId, topicId } = classifySessionFile(fileName);
  if (sessionId === null || topicId === null) return null;
  const known = log.image.twinOf(sessionId);
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

/** Accepts only keys in the long form, because a short one in a foreign file may be arbitrary text. */
function isWhole(key: string, agentId: string): boolean {
  return key.startsWith("agent:") && belongsTo(key, agentId);
}

interface FileHeader {
  readonly header: TranscriptHeader | null;
  readonly envelope: StoreEnvelope | null;
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
