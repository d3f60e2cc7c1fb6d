import type * as nodeSqlite from "node:sqlite";
import { keptSinceMs, type KeyedAppend, type SessionKeys, timeOf } from "./session-row.ts";
import { defaultIdempotency } from "@throughline/core/internal";

/** Keeps keyed appends without records in the index, for a log that is lost. */
export class IndexedKeys {
  readonly #statement: (sql: string) => nodeSqlite.StatementSync;

  /** `statement` caches compiled statements, because every keyed append runs one. */
  constructor(statement: (sql: string) => nodeSqlite.StatementSync) {
    this.#statement = statement;
  }

  of(sessionId: string): readonly KeyedAppend[] {
    const rows = this.#statement("SELECT value FROM keyed WHERE id = ? ORDER BY place").all(sessionId);
    return rows.map(({ value }) => JSON.parse(value as string) as KeyedAppend);
  }

  remember({ sessionId, appends }: SessionKeys): void {
    const insert = this.#statement("INSERT OR REPLACE INTO keyed (id, key, at_ms, value) VALUES (?, ?, ?, ?)");
    for (const append of appends) insert.run(sessionId, append[0], Math.trunc(timeOf(append)), JSON.stringify(append));
    const forget = this.#statement(
      `DELETE FROM keyed WHERE id = ? AND at_ms < ? AND place <=
        (SELECT place FROM keyed WHERE id = ? ORDER BY place DESC LIMIT 1 OFFSET ?)`,
    );
    forget.run(sessionId, keptSinceMs(timeOf(appends.at(-1))), sessionId, defaultIdempotency.rememberedAppends);
  }

  forget(sessionId: string): void {
    this.#statement("DELETE FROM keyed WHERE id = ?").run(sessionId);
  }

  clear(): void {
    this.#statement("DELETE FROM keyed").run();
  }
}
