import type { Fields } from "@throughline/core/internal";
import type { SessionRecord } from "@throughline/core";
import { isoTime, readTimeMs } from "./read-time.ts";
import { isUsableRecordId } from "./record-id-book.ts";

/** What the first line of a transcript says. */
export interface TranscriptHeader {
  /** The session's id; null when the header states none that is text. */
  readonly sessionId: string | null;
  /** 1 when the header states none. */
  readonly version: number;
  /** When the session was created, ISO 8601 where it can be read; null when it is not stated. */
  readonly timestamp: string | null;
  /** The folder that the session worked in; null when the header states none. */
  readonly cwd: string | null;
  /** The session's key: our own headers and one tutorial's carry it. */
  readonly key: string | null;
  /** The session or file that this one was forked from; null when the header states none. */
  readonly parentSession: string | null;
  /** The header's line, from 1. */
  readonly line: number;
  /** Everything the line says. */
  readonly fields: Fields;
}

/** The newest transcript version whose lines are known. */
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

/** What is wrong with a header; null when nothing is. */
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

/** The id of the record a header stands for, before it is made unique. */
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
