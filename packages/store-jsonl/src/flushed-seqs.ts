import { crc32 } from "node:zlib";
import type { StatementSync } from "node:sqlite";

/** Up to which seq the records of a transcript were on the disk, as the process knew it that flushed them. */
export interface FlushedRecords {
  /** Of the file. */
  readonly identity: string;
  readonly seq: number;
}

/** The part of the index that proves which records were acknowledged. It stays when the rest is rebuilt. */
export class FlushedSeqs {
  readonly #statement: (sql: string) => StatementSync;

  constructor(statement: (sql: string) => StatementSync) {
    this.#statement = statement;
  }

  /** 0 for an unknown file. */
  of(sessionId: string, identity: string): number {
    const found = this.#statement("SELECT value FROM state WHERE name = ?").get(nameOf(sessionId));
    const [known, seq, crc] = String(found?.["value"] ?? "").split(" ");
    const isWhole = crc === undefined || Number(crc) === crc32(`${known} ${seq}`);
    return known === identity && isWhole ? Number(seq) : 0;
  }

  /** Never lowers what is known of the same file. */
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
