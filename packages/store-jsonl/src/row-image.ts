import { KeyedAppends } from "./keyed-appends.ts";
import type { RowChange, SessionRow } from "./session-row.ts";

/** What lines of the entries log add up to. */
export class RowImage {
  readonly rows: Map<string, SessionRow> = new Map();
  /** Active sessions by key. */
  readonly idByKey: Map<string, string> = new Map();
  /** Sessions that were purged and whose bytes may still have to go: ids, and names of transcripts that are called otherwise. */
  readonly removed: Set<string> = new Set();
  readonly keyed: KeyedAppends = new KeyedAppends();

  readonly #idByLetters: Map<string, string> = new Map();

  apply({ rows, removed = [], keyed = [] }: RowChange): void {
    for (const sessionId of removed) {
      this.#forgetKey(sessionId);
      this.rows.delete(sessionId);
      this.#idByLetters.delete(sessionId.toLowerCase());
      this.removed.add(sessionId);
      this.keyed.forget(sessionId);
    }
    for (const row of rows) this.#forgetKey(row.sessionId);
    for (const row of rows) {
      this.removed.delete(row.sessionId);
      this.take(row);
    }
    for (const keys of keyed) this.keyed.remember(keys);
  }

  take(row: SessionRow): void {
    this.rows.set(row.sessionId, row);
    this.#idByLetters.set(row.sessionId.toLowerCase(), row.sessionId);
    if (!row.isArchived) this.idByKey.set(row.key, row.sessionId);
  }

  /** A session whose id is this one but for capitals. */
  twinOf(sessionId: string): string | null {
    return this.#idByLetters.get(sessionId.toLowerCase()) ?? null;
  }

  /** Every name a transcript may have. */
  fileNames(): Iterable<string> {
    return [...this.rows.values()].flatMap(({ sessionId, fileName, formerFileName = fileName }) => [
      `${sessionId}.jsonl`,
      fileName,
      formerFileName,
    ]);
  }

  clear(): void {
    this.rows.clear();
    this.idByKey.clear();
    this.removed.clear();
    this.keyed.clear();
    this.#idByLetters.clear();
  }

  #forgetKey(sessionId: string): void {
    const old = this.rows.get(sessionId);
    if (old !== undefined && this.idByKey.get(old.key) === sessionId) this.idByKey.delete(old.key);
  }
}
