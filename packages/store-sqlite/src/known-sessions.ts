import type { SessionRef } from "@throughline/core";
import type { SessionRow } from "./statements.ts";

/** With more sessions than this the rows are forgotten and read again. */
const mostRows = 512;

/**
 * The rows of sessions as this connection's last append left them, so that the next one need not read them again. They
 * hold until anybody else commits, which SQLite tells by its data version, or this connection writes anything but an append.
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

  find(ref: SessionRef): SessionRow | undefined {
    return ref.archiveId === undefined ? this.#rows.get(nameOf(ref)) : undefined;
  }

  /** What the transaction has made of a row. Should it not be committed, everything is forgotten. */
  put(ref: SessionRef, row: SessionRow): void {
    if (this.#rows.size >= mostRows) this.#rows.clear();
    this.#rows.set(nameOf(ref), row);
  }

  forget(): void {
    this.#rows.clear();
  }
}

function nameOf({ namespace, agentId, key }: SessionRef): string {
  return `${namespace}\0${agentId}\0${key}`;
}
