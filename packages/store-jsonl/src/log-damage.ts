import type { RowChange } from "./session-row.ts";
import { parseObject } from "./stored-line.ts";

/**
 * A line without the zeros in front of it: what a power cut leaves of lines whose size arrived and whose bytes did not,
 * line feeds included. The line behind them is whole.
 */
export function withoutZeros(line: string): string {
  let from = 0;
  while (line.charCodeAt(from) === 0) from++;
  return from === 0 ? line : line.slice(from);
}

/** Lines of the entries log that cannot be read any more, and which sessions they were about. */
export class LogDamage {
  /** A line is missing that nobody can say anything of. */
  isThere = false;
  /** Sessions whose newest line may be the one that is broken. */
  readonly sessionIds: Set<string> = new Set();

  /** A line of a newer version is whole: it only is not understood here. Of one of zeros alone: an empty text. */
  add(line: string): void {
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
    this.sessionIds.clear();
  }
}
