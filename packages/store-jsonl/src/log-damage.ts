import { createFinding, type Finding, type SessionRef } from "@throughline/core";
import { decodeRowChange, type DecodedChange, type RowChange } from "./session-row.ts";
import { parseObject, type LineCodec } from "./stored-line.ts";

/** What a line of the entries log says, and what is lost in its place. */
export interface LogLine {
  /** Mostly one; none where nothing can be read. */
  readonly decoded: readonly DecodedChange[];
  /** The text nobody can read, empty where only zeros are left; null when nothing is lost. */
  readonly lost: string | null;
}

/**
 * Reads a line. There may be zeros in it: what a power cut leaves of lines whose size arrived and whose bytes did not, line
 * feeds included. A single one between whole changes was a line feed.
 */
export function readLogLine(
  bytes: Uint8Array,
  codec: LineCodec,
  agent: Pick<SessionRef, "namespace" | "agentId">,
): LogLine {
  const text = Buffer.from(bytes).toString();
  const whole = decodeRowChange(text, codec, agent);
  if (whole !== null) return { decoded: [whole], lost: null };
  const decoded: DecodedChange[] = [];
  const unread: string[] = [];
  for (const part of text.split(/\0+/)) {
    const change = part === "" ? null : decodeRowChange(part, codec, agent);
    if (change !== null) decoded.push(change);
    else if (part !== "") unread.push(part);
  }
  const isWhole = unread.length === 0 && decoded.length > 0 && !/^\0|\0\0|\0$/.test(text);
  return { decoded, lost: isWhole ? null : unread.join("\n") };
}

/** Lines of the entries log that cannot be read any more, and which sessions they were about. */
export class LogDamage {
  /** A line is missing that nobody can say anything of. */
  isThere = false;
  /** There are lines that are not understood here, damaged or of a newer version: they must stay. */
  hasUnread = false;
  /** Whole lines of a newer version without a line of this version after them: a rewritten log keeps them. */
  newer: string[] = [];
  /** Sessions whose newest line may be the one that is broken. */
  readonly sessionIds: Set<string> = new Set();

  /** Takes note of what is wrong with a line, and says so. */
  note(
    { decoded, lost }: LogLine,
    place: Parameters<typeof createFinding>[2],
    onFinding: (finding: Finding) => void,
  ): void {
    if (lost !== null) {
      this.add(lost);
      onFinding(createFinding("ENTRY_UNREADABLE", "A line of the entries log cannot be read.", place));
    }
    if (decoded.some(({ isChecksumRight }) => !isChecksumRight))
      onFinding(createFinding("CHECKSUM_MISMATCH", "A line of the entries log does not fit its checksum.", place));
  }

  /** A line of a newer version is whole: it only is not understood here. Of one of zeros alone: an empty text. */
  add(line: string): void {
    this.hasUnread = true;
    if (parseObject(line) !== null) return void this.newer.push(line);
    this.isThere = true;
    for (const [, sessionId = ""] of line.matchAll(/"sessionId":"([^"\\]+)"/g)) this.sessionIds.add(sessionId);
  }

  /** What comes later says everything that the broken line said. */
  mend({ rows, removed = [] }: RowChange): void {
    if (this.sessionIds.size === 0 && this.newer.length === 0) return;
    for (const sessionId of [...rows.map((row) => row.sessionId), ...removed]) {
      this.sessionIds.delete(sessionId);
      this.newer = this.newer.filter((line) => !line.includes(JSON.stringify(sessionId)));
    }
  }

  clear(): void {
    this.isThere = false;
    this.hasUnread = false;
    this.newer = [];
    this.sessionIds.clear();
  }
}
