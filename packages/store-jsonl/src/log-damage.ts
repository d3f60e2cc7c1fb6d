import { createFinding, type Finding, type SessionRef } from "@throughline/core";
import { decodeRowChange, type DecodedChange, type RowChange } from "./session-row.ts";
import { parseObject, type LineCodec } from "./stored-line.ts";

/** What a line of the entries log says, and what is lost in its place. */
export interface LogLine {
  /** Null when it cannot be read. */
  readonly decoded: DecodedChange | null;
  /** The text nobody can read, empty where only zeros are left; null when nothing is lost. */
  readonly lost: string | null;
}

/**
 * Reads a line. In front of a whole one there may be zeros: what a power cut leaves of lines before it whose size arrived
 * and whose bytes did not, line feeds included.
 */
export function readLogLine(
  bytes: Uint8Array,
  codec: LineCodec,
  agent: Pick<SessionRef, "namespace" | "agentId">,
): LogLine {
  let from = 0;
  while (bytes[from] === 0) from++;
  const text = Buffer.from(bytes.subarray(from)).toString();
  const decoded = decodeRowChange(text, codec, agent);
  return { decoded, lost: decoded === null ? text : from > 0 ? "" : null };
}

/** Lines of the entries log that cannot be read any more, and which sessions they were about. */
export class LogDamage {
  /** A line is missing that nobody can say anything of. */
  isThere = false;
  /** There are lines that are not understood here, damaged or of a newer version: they must stay. */
  hasUnread = false;
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
    if (decoded?.isChecksumRight === false)
      onFinding(createFinding("CHECKSUM_MISMATCH", "A line of the entries log does not fit its checksum.", place));
  }

  /** A line of a newer version is whole: it only is not understood here. Of one of zeros alone: an empty text. */
  add(line: string): void {
    this.hasUnread = true;
    if (parseObject(line) !== null) return;
    this.isThere = true;
    for (const [, sessionId = ""] of line.matchAll(/"sessionId":"([^"\\]+)"/g)) this.sessionIds.add(sessionId);
  }

  /** What comes later says everything that the broken line said. */
  mend({ rows, removed = [] }: RowChange): void {
    if (this.sessionIds.size === 0) return;
    for (const { sessionId } of rows) this.sessionIds.delete(sessionId);
    for (const sessionId of removed) this.sessionIds.delete(sessionId);
  }

  clear(): void {
    this.isThere = false;
    this.hasUnread = false;
    this.sessionIds.clear();
  }
}
