import { crc32 } from "node:zlib";
import type { StatementSync } from "node:sqlite";

export interface FlushedRecords {
  /** Identifies the file, because a seq of a replaced file proves nothing. */
  readonly identity: string;
  readonly seq: number;
}

/** Stores the proof of which records were acknowledged. It stays when the rest of the index is rebuilt. */
export class FlushedSeqs {
  readonly #statement: (sql: string) => StatementSync;

  constructor(statement: (sql: string) => StatementSync) {
    this.#statement = statement;
  }

  /** Returns the flushed seq; 0 for an unknown file. */
  of(sessionId: string, identity: string): number {
    const found = this.#statement("SELECT value FROM state WHERE name = ?").get(nameOf(sessionId));
    const [known, seq, crc] = String(found?.["value"] ?? "").split(" ");
    const isWhole = crc === undefined || Number(crc) === crc32(`${known} ${seq}`);
    return known === identity && isWhole ? Number(seq) : 0;
  }

  /** Keeps the higher seq of the same file, because a flush proves all earlier records. */
  note(sessionId: string, { identity, seq }: FlushedRecords): void {
    if (seq <= this.of(sessionId, identity)) return;
    const text = `${identity} ${seq}`;
    this.#statement("INSERT OR REPLACE INTO state VALUES (?, ?)").run(nameOf(sessionId), `${text} ${crc32(text)}`);
  }

  forget(sessionId: string): void {
    this.#statement("DELETE FROM state WHERE name = ?").run(nameOf(sessionId));
  }
}

function nameOf(sessionId: string): string {
  return `flushed:${sessionId}`;
}
