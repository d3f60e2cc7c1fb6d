import type { SessionRef } from "@throughline/core";
import type { SessionRow } from "./rows.ts";

/** With more sessions than this the rows are forgotten and read again. */
const mostRows = 512;

/**
 * The rows of sessions as this connection's last append left them, so that the next one need not read them again. They
 * hold until another connection commits, which SQLite's data version shows, or this connection writes anything but an
 * append.
 */
export class KnownSessions {
  readonly #rows = new Map<string, SessionRow>();
  #version = 0;

  /** To be called inside every transaction before its first look, with the data version seen there. */
  check(version: number): void {
    if (version === this.#version) return;
    this.#version = version;
    this.#rows.clear();
  }

  /**
   * By the key alone, which names its agent already: putting the three parts of an address together and hashing them took
   * as long as writing the session's row. Of two sessions with one key in two namespaces the one that wrote last is known.
   */
  find({ namespace, agentId, key, archiveId }: SessionRef): SessionRow | undefined {
    const row = archiveId === undefined ? this.#rows.get(key) : undefined;
    return row !== undefined && row.namespace === namespace && row.agent_id === agentId ? row : undefined;
  }

  /** What the transaction has made of a row. Should it not be committed, everything is forgotten. */
  put(row: SessionRow): void {
    if (this.#rows.size >= mostRows) this.#rows.clear();
    this.#rows.set(row.key, row);
  }

  forget(): void {
    this.#rows.clear();
  }
}
