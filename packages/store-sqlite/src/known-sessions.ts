import type { SessionRef } from "@throughline/core";
import type { SessionRow } from "./rows.ts";

/** The cache is emptied when it has more rows than this. */
const mostRows = 512;

/**
 * Caches the rows of sessions as the last append of this connection left them, so that the next append need not read
 * them. The rows hold until another connection commits, which SQLite's data version shows, or this connection writes
 * anything but an append.
 */
export class KnownSessions {
  readonly #rows = new Map<string, SessionRow>();
  #version = 0;

  /** Must be called inside every transaction before its first read, with the data version at that moment. */
  check(version: number): void {
    if (version === this.#version) return;
    this.#version = version;
    this.#rows.clear();
  }

  /**
   * The key alone is the index, because building and hashing an address of three parts took as long as writing the row.
   * The cache holds one of two sessions that have the same key in two namespaces: the one that wrote last.
   */
  find({ namespace, agentId, key, archiveId }: SessionRef): SessionRow | undefined {
    const row = archiveId === undefined ? this.#rows.get(key) : undefined;
    return row !== undefined && row.namespace === namespace && row.agent_id === agentId ? row : undefined;
  }

  /** Holds the row as the transaction leaves it. The cache is emptied when the commit fails. */
  put(row: SessionRow): void {
    if (this.#rows.size >= mostRows) this.#rows.clear();
    this.#rows.set(row.key, row);
  }

  forget(): void {
    this.#rows.clear();
  }
}
