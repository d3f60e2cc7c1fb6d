import type { Fields } from "@throughline/core/internal";
import type { SessionRecord } from "@throughline/core";
import { isoTime, readTimeMs } from "./read-time.ts";
import { isUsableRecordId } from "./record-id-book.ts";

/** Holds the content of a transcript's first line. */
export interface TranscriptHeader {
  /** States the session's id; null when the header states no text as id. */
  readonly sessionId: string | null;
  /** States the transcript version; 1 when the header states none. */
  readonly version: number;
  /** States when the session was created, in ISO 8601 if the time can be read; null when it is not stated. */
  readonly timestamp: string | null;
  /** States the folder that the session worked in; null when the header states none. */
  readonly cwd: string | null;
  /** States the session's key, or null. Throughline's headers and those of one tutorial carry it. */
  readonly key: string | null;
  /** States the session or file that this session was forked from; null when the header states none. */
  readonly parentSession: string | null;
  /** States the line of the header, from 1. */
  readonly line: number;
  /** Holds all fields of the line. */
  readonly fields: Fields;
}

/** Lines of a newer version are read like lines of this one. */
const newestTranscriptVersion = 4;

export function readHeader(fields: Fields, line: number): TranscriptHeader {
  const { id, version, timestamp, created, cwd, key, parentSession } = fields;
  const timeMs = readTimeMs(timestamp ?? created);
  return {
    sessionId: textOrNull(id),
    version: typeof version === "number" && Number.isInteger(version) && version > 0 ? version : 1,
    timestamp: typeof timestamp === "string" ? timestamp : timeMs === null ? null : isoTime(timeMs),
    cwd: textOrNull(cwd),
    key: textOrNull(key),
    parentSession: textOrNull(parentSession),
    line,
    fields,
  };
}

export function headerProblem(header: TranscriptHeader): string | null {
  const { id, version } = header.fields;
  if (header.sessionId === null)
    return id === undefined ? "The header names no session." : "The header's session id is not text.";
  if (version !== undefined && header.version !== version)
    return "The header's version is not a number; the file is read as version 1.";
  if (header.version > newestTranscriptVersion) {
    return `The header says version ${header.version}; its lines are read like those of version ${newestTranscriptVersion}.`;
  }
  return null;
}

/** The id is not unique yet when a file has several headers, so the caller must claim it. */
export function headerRecordId(header: TranscriptHeader): string {
  const id = `header:${header.sessionId ?? "unknown"}`;
  return isUsableRecordId(id) ? id : "header:unknown";
}

export function headerRecord(header: TranscriptHeader, id: string, timestamp: string): SessionRecord {
  const { type: _type, id: _id, parentId: _parentId, timestamp: _timestamp, ...rest } = header.fields;
  const sessionId = header.sessionId === null ? {} : { sessionId: header.sessionId };
  return { type: "session", id, parentId: null, timestamp, ...sessionId, ...rest };
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
