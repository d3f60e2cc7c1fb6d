import type * as nodeSqlite from "node:sqlite";
import { horizonOf, keptSinceMs, type KeyedAppend, type SessionKeys, timeOf } from "./session-row.ts";
import { defaultIdempotency } from "@throughline/core/internal";

/** Stores keyed appends without records in the index, with the semantics of `KeyedAppends`. */
export class IndexedKeys {
  readonly #statement: (sql: string) => nodeSqlite.StatementSync;

  /** `statement` caches compiled statements, because every keyed append runs one. */
  constructor(statement: (sql: string) => nodeSqlite.StatementSync) {
    this.#statement = statement;
  }

  find(sessionId: string, key: string): KeyedAppend | null {
    const row = this.#statement("SELECT value FROM keyed WHERE id = ? AND key = ?").get(sessionId, key);
    return row === undefined ? null : (JSON.parse(row["value"] as string) as KeyedAppend);
  }

  of(sessionId: string): readonly KeyedAppend[] {
    const rows = this.#statement("SELECT value FROM keyed WHERE id = ? ORDER BY place").all(sessionId);
    return rows.map(({ value }) => JSON.parse(value as string) as KeyedAppend);
  }

  horizonMs(sessionId: string): number {
    if (this.#timeAt(sessionId, "place DESC", defaultIdempotency.rememberedAppends - 1) === null) return -1;
    return horizonOf(this.#timeAt(sessionId, "place", 0) ?? 0, this.#timeAt(sessionId, "place DESC", 0) ?? 0);
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

  #timeAt(sessionId: string, order: "place" | "place DESC", offset: number): number | null {
    const statement = this.#statement(`SELECT at_ms FROM keyed WHERE id = ? ORDER BY ${order} LIMIT 1 OFFSET ?`);
    return (statement.get(sessionId, offset)?.["at_ms"] as number | undefined) ?? null;
  }
}
