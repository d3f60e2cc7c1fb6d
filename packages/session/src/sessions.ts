import type { ListQuery } from "@throughline/core";
import type { SessionAddress, SessionRow, UserDeletion } from "@throughline/core/internal";
import type { AttachedTurn, AttachOptions } from "./attach-turn.ts";
import type { UsageReport } from "@throughline/usage";
import type { UsageQuery } from "@throughline/usage/internal";
import type { SessionFiles } from "./session-files.ts";
import type { Session } from "./session.ts";

/**
 * Names a session. A text with a colon is a key. Any other text is a label: its session has the key
 * `agent:<agentId>:cli:direct:<label-slug>`, unless the store has a session whose key is the text itself. An object is
 * an address, whose key is used unchanged.
 */
export type SessionName = string | SessionAddress;

/** Sets the signal of `sessions.open`, and whether a missing session is created. */
export interface OpenSessionOptions {
  /** Creates a missing session. With false, a missing session throws SESSION_NOT_FOUND. @default true */
  readonly create?: boolean | undefined;
  /** Aborts reading the window. */
  readonly signal?: AbortSignal | undefined;
}

/** Sets the signal of `sessions.find`. */
export interface FindSessionOptions {
  /** Aborts the look-up. */
  readonly signal?: AbortSignal | undefined;
}

/** Selects the sessions that `list` returns. */
export interface SessionQuery extends Omit<ListQuery, "namespace" | "agentId" | "importedFrom"> {
  /** Includes the sessions of every agent in the namespace. @default false: only the agent of this `Sessions` */
  readonly allAgents?: boolean | undefined;
}

/** Holds one page of sessions. */
export interface SessionList {
  /** Holds the sessions of this page, in the order that the query names. */
  readonly sessions: readonly SessionRow[];
  /** Holds the `cursor` of the next page, for the same query; null after the last page. */
  readonly nextCursor: string | null;
}

/** Selects the calls that `sessions.usage` adds up, and how they are grouped. */
export interface SessionsUsageQuery extends Pick<
  UsageQuery,
  "by" | "sinceMs" | "untilMs" | "timeZone" | "model" | "signal"
> {
  /** Includes the sessions of every agent in the namespace. @default false: only the agent of this `Sessions` */
  readonly allAgents?: boolean | undefined;
}

/**
 * Names the sessions of a user: by a namespace that is the user's alone, or by whole parts of a key. A prefix takes the
 * key itself and keys that continue it with a colon.
 */
export type SessionsUser =
  | {
      /** Names the namespace of the user; not "". */
      readonly namespace: string;
    }
  | {
      /** Holds the beginning of the keys, such as `agent:main:web:direct:user-42`. */
      readonly keyPrefix: string;
      /** Names the namespace of the keys. @default that of this `Sessions` */
      readonly namespace?: string | undefined;
    };

/** Sets whether `sessions.deleteUser` removes anything, and how it waits for turns. */
export interface DeleteUserOptions {
  /** Counts what would be removed, and removes nothing. @default false */
  readonly dryRun?: boolean | undefined;
  /** Limits the wait for a running turn of each session, in milliseconds; then SESSION_BUSY. @default 15000 */
  readonly waitMs?: number | undefined;
  /** Aborts the deletion. What was deleted stays deleted. */
  readonly signal?: AbortSignal | undefined;
}

/** Sets how `sessions.delete` removes a session. */
export interface DeleteSessionOptions {
  /**
   * Deletes the session and every copy of its content. This cannot be undone.
   * @default false: the session is archived
   */
  readonly purge?: boolean | undefined;
  /** Limits the wait for a running turn of the session, in milliseconds; then SESSION_BUSY. @default 15000 */
  readonly waitMs?: number | undefined;
  /** Aborts the wait. */
  readonly signal?: AbortSignal | undefined;
}

/** Sets the fork point and the name of `sessions.fork`. */
export interface ForkSessionOptions {
  /** Names the last record that both sessions have, by id or seq. @default the newest record */
  readonly at?: string | number | undefined;
  /**
   * Sets the key or the label of the new session.
   * @default the first of `<key>-fork`, `<key>-fork-2`, … that is free
   */
  readonly key?: string | undefined;
  /** Sets the label of the new session. @default the label of the original session */
  readonly label?: string | undefined;
  /** Aborts the fork, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Sets the new key and the new label of `sessions.rename`. */
export interface RenameSessionOptions {
  /** Sets the new key, or a label that the key is derived from. @default the session keeps its key */
  readonly key?: string | undefined;
  /** Sets the label; the empty text removes it. @default the session keeps its label */
  readonly label?: string | undefined;
  /**
   * Limits how long a new key waits for a running turn of the session, in milliseconds; then SESSION_BUSY.
   * @default 15000
   */
  readonly waitMs?: number | undefined;
  /** Aborts the wait for a running turn. */
  readonly signal?: AbortSignal | undefined;
}

/** Gives access to the sessions of one store. */
export interface Sessions extends AsyncDisposable {
  /** Keeps files that messages refer to. */
  readonly files: SessionFiles;
  /**
   * Opens a session and reads only its window. A missing session is created, unless `create` is false.
   *
   * @param session a label, a key, or an address
   * @throws {ThroughlineError} INPUT_INVALID, KEY_INVALID for a label without letters and digits or with more than 64
   *   of them, AGENT_ID_INVALID, KEY_AGENT_MISMATCH, SESSION_NOT_FOUND with `create: false`, SESSION_ARCHIVED,
   *   SESSION_CLOSED, and what the store throws
   * @example
   * const session = await sessions.open("home"); // the key agent:main:cli:direct:home
   */
  open(session: SessionName, options?: OpenSessionOptions): Promise<Session>;
  /**
   * Returns the row of a session that `open` would open, or null when it would create one. Nothing is created.
   *
   * @param session a label, a key, or an address
   * @throws {ThroughlineError} as `open` for a name that is not valid, SESSION_CLOSED, and what the store throws
   * @example
   * if ((await sessions.find("home")) === null) return new Response("not found", { status: 404 });
   */
  find(session: SessionName, options?: FindSessionOptions): Promise<SessionRow | null>;
  /**
   * Streams the events of a turn that runs already, like `session.attach`, without opening the session.
   *
   * @param session a label, a key, or an address
   * @returns null when no turn runs, and when there is no such session; nothing is created
   * @throws {ThroughlineError} as `open` for a name that is not valid, SESSION_CLOSED, and what the store throws
   * @example
   * const attached = await sessions.attach("home");
   * return attached === null ? new Response(null, { status: 204 }) : attached.toResponse();
   */
  attach(session: SessionName, options?: AttachOptions): Promise<AttachedTurn | null>;
  /**
   * Lists sessions by page, the most recently used first by default.
   *
   * @throws {ThroughlineError} INPUT_INVALID, CURSOR_INVALID, SESSION_CLOSED, and what the store throws
   */
  list(query?: SessionQuery): Promise<SessionList>;
  /**
   * Archives a session once no turn runs in it, and closes its handles. `restore` makes the session the current one
   * again. The main session of an agent cannot be deleted: reset it.
   *
   * @param session its exact key, label or id, or its address
   * @returns the archived session; null when it was purged
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND, SESSION_PROTECTED, SESSION_BUSY, ABORTED,
   *   SESSION_CLOSED, and what the store throws
   */
  delete(session: SessionName, options?: DeleteSessionOptions): Promise<SessionRow | null>;
  /**
   * Purges all sessions of a user: current and archived ones, their forks, and those that they spawned, with partial
   * replies, notes, wire frames and rows of the search. With `dryRun` it counts them only. After an interruption the
   * same call deletes the rest.
   *
   * @returns what was removed, and where copies may remain that the store cannot reach
   * @throws {ThroughlineError} INPUT_INVALID for a user that would be everybody, SESSION_PROTECTED for a prefix that
   *   reaches the main session of an agent, SESSION_BUSY, ABORTED, SESSION_CLOSED, and what the store throws
   * @example
   * const { counts } = await sessions.deleteUser({ namespace: "user-42" }, { dryRun: true });
   * console.log(`${counts.sessions} sessions with ${counts.messages} messages`);
   * await sessions.deleteUser({ namespace: "user-42" });
   */
  deleteUser(user: SessionsUser, options?: DeleteUserOptions): Promise<UserDeletion>;
  /**
   * Makes an archived session the current one of its key again.
   *
   * @param archiveId the `archiveId` or the `sessionId` of the archived session
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND, SESSION_EXISTS while another session has the key,
   *   SESSION_CLOSED, and what the store throws
   */
  restore(archiveId: string): Promise<SessionRow>;
  /**
   * Creates a session that begins with the records of another session. The other session stays unchanged.
   *
   * @param session the other session's exact key, label or id, or its address
   * @throws {ThroughlineError} INPUT_INVALID, KEY_INVALID, SESSION_NOT_FOUND, RECORD_NOT_FOUND, SESSION_EXISTS for a
   *   key that is taken, SESSION_CLOSED, and what the store throws
   */
  fork(session: SessionName, options?: ForkSessionOptions): Promise<SessionRow>;
  /**
   * Gives a session another key, another label, or both. Its id and its records stay. A new key closes the handles of
   * the session.
   *
   * @param session its exact key, label or id, or its address
   * @throws {ThroughlineError} INPUT_INVALID, KEY_INVALID, SESSION_NOT_FOUND, SESSION_EXISTS, SESSION_BUSY, ABORTED,
   *   SESSION_CLOSED, and what the store throws
   */
  rename(session: SessionName, options: RenameSessionOptions): Promise<SessionRow>;
  /**
   * Adds up the tokens and the cost of the calls in all sessions, archived and imported ones included. Each call counts
   * once, also if forks share it. The first call reads every session of the namespace; later ones read new records only.
   * It needs `node:sqlite` for the sums, which it keeps in memory.
   *
   * @throws {ThroughlineError} INPUT_INVALID, CAPABILITY_UNSUPPORTED without `node:sqlite`, ABORTED, SESSION_CLOSED, and
   *   what the store throws
   * @example
   * const { rows, total } = await sessions.usage({ by: ["day", "model"], sinceMs: Date.now() - 7 * 86_400_000 });
   */
  usage(query?: SessionsUsageQuery): Promise<UsageReport>;
  /** Closes all open sessions. The store stays open. The method may be called again. */
  close(): Promise<void>;
}
