import type { ListQuery, SessionAddress } from "@throughline/core";
import type { SessionRow } from "@throughline/core/internal";
import type { Session } from "./session.ts";

/**
 * How a program names a session. A text with a colon is a key. Any other text is a label: its session has the key
 * `agent:<agentId>:cli:direct:<label-slug>`, unless the store has a session whose key is the text itself. An object is an
 * address: its key is taken as it is.
 */
export type SessionName = string | SessionAddress;

/** Options of `sessions.open`. */
export interface OpenSessionOptions {
  /** Ends the reading of the window. */
  readonly signal?: AbortSignal;
}

/** Which sessions `list` gives. */
export interface SessionQuery extends Omit<ListQuery, "namespace" | "agentId"> {
  /** Those of every agent in the namespace. @default false: those of the agent of these sessions */
  readonly allAgents?: boolean;
}

/** One page of sessions. */
export interface SessionList {
  /** The sessions of this page, in the order that the query names. */
  readonly sessions: readonly SessionRow[];
  /** For `cursor` of the next page, with the same query; null behind the last one. */
  readonly nextCursor: string | null;
}

/** Options of `sessions.delete`. */
export interface DeleteSessionOptions {
  /** Deletes the session and every copy of its content. This cannot be undone. @default false: it is archived */
  readonly purge?: boolean;
  /** How long to wait for a turn that runs in the session, in milliseconds; then SESSION_BUSY. @default 15000 */
  readonly waitMs?: number;
  /** Ends the wait. */
  readonly signal?: AbortSignal;
}

/** Options of `sessions.fork`. */
export interface ForkSessionOptions {
  /** The last record that both sessions have: its id or its seq. @default the newest record */
  readonly at?: string | number;
  /** The key or the label of the new session. @default the first of `<key>-fork`, `<key>-fork-2`, … that is free */
  readonly key?: string;
  /** What the new session is called. @default as the other one */
  readonly label?: string;
  /** Ends the fork, which then throws ABORTED. */
  readonly signal?: AbortSignal;
}

/** Options of `sessions.rename`. */
export interface RenameSessionOptions {
  /** The new key, or a label that makes it. @default the session keeps its key */
  readonly key?: string;
  /** What the session is called; the empty text removes the label. @default the session keeps its label */
  readonly label?: string;
  /** How long a new key waits for a turn that runs in the session, in milliseconds; then SESSION_BUSY. @default 15000 */
  readonly waitMs?: number;
  /** Aborts the wait for a turn that runs. */
  readonly signal?: AbortSignal;
}

/** The sessions of one store. */
export interface Sessions extends AsyncDisposable {
  /**
   * Opens a session, which is created when there is none. Reads its window and nothing before it.
   *
   * @param session a label, a key, or an address
   * @throws {ThroughlineError} INPUT_INVALID, KEY_INVALID for a label without letters and digits or with more than 64 of them,
   *   AGENT_ID_INVALID, KEY_AGENT_MISMATCH, SESSION_ARCHIVED, SESSION_CLOSED, and what the store throws
   * @example
   * const session = await sessions.open("home"); // the key agent:main:cli:direct:home
   */
  open(session: SessionName, options?: OpenSessionOptions): Promise<Session>;
  /**
   * Lists sessions by page, the one used last first.
   * @throws {ThroughlineError} INPUT_INVALID, CURSOR_INVALID, SESSION_CLOSED, and what the store throws
   */
  list(query?: SessionQuery): Promise<SessionList>;
  /**
   * Archives a session once no turn runs in it; `restore` makes it the current one again. Handles of it are closed. An
   * agent's main session cannot be deleted: reset it.
   *
   * @param session its exact key, label or id, or its address
   * @returns the archived session; null when it was purged
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND, SESSION_PROTECTED, SESSION_BUSY, ABORTED, SESSION_CLOSED, and
   *   what the store throws
   */
  delete(session: SessionName, options?: DeleteSessionOptions): Promise<SessionRow | null>;
  /**
   * Makes an archived session the current one of its key again.
   *
   * @param archiveId the `archiveId` or the `sessionId` of the archived session
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND, SESSION_EXISTS while another session has the key,
   *   SESSION_CLOSED, and what the store throws
   */
  restore(archiveId: string): Promise<SessionRow>;
  /**
   * Creates a session that begins with the records of another, which stays as it is.
   *
   * @param session the other session's exact key, label or id, or its address
   * @throws {ThroughlineError} INPUT_INVALID, KEY_INVALID, SESSION_NOT_FOUND, RECORD_NOT_FOUND, SESSION_EXISTS for a key that is
   *   taken, SESSION_CLOSED, and what the store throws
   */
  fork(session: SessionName, options?: ForkSessionOptions): Promise<SessionRow>;
  /**
   * Gives a session another key, another label, or both. Its id and its records stay. With a new key its handles are closed.
   *
   * @param session its exact key, label or id, or its address
   * @throws {ThroughlineError} INPUT_INVALID, KEY_INVALID, SESSION_NOT_FOUND, SESSION_EXISTS, SESSION_BUSY, ABORTED,
   *   SESSION_CLOSED, and what the store throws
   */
  rename(session: SessionName, options: RenameSessionOptions): Promise<SessionRow>;
  /** Closes the sessions that are open; the store stays open. May be called again. */
  close(): Promise<void>;
}
