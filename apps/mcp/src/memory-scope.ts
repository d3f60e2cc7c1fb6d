import type { SessionStore } from "@throughline/core";
import type { MeaningSearch } from "@throughline/tools/internal/search";

/**
 * Limits what a client may read and write. The configuration and the token decide; no argument of a call widens the
 * scope.
 */
export interface MemoryScope {
  readonly namespace: string;
  /** Names the agent whose notes are kept, and to whom keys without an agent belong. */
  readonly agentId: string;
  /** Lists the agents whose sessions are visible; `*` shows the whole namespace. */
  readonly agents: readonly string[] | "*";
  /** Limits the visible sessions to these key prefixes; an empty list shows all sessions of the agents. */
  readonly keyPrefixes: readonly string[];
  /**
   * Limits the visible sessions to those whose working folder is this absolute path or lies below it, after links are
   * resolved. A session without a folder is not visible. Each folder has notes of its own. @default every session
   */
  readonly folder?: string;
  readonly allowNotes: boolean;
}

export interface MemoryPlace {
  readonly path: string;
  readonly firstLine: number;
  readonly lastLine: number;
  readonly snippet: string;
}

export interface MemoryServerOptions {
  readonly version: string;
  /**
   * Returns the store of a call; the caller keeps and closes it. The function runs for each call, because the store may
   * be created while the server runs. Only notes open it for writing.
   */
  readonly openStore: (purpose: "read" | "write") => Promise<SessionStore>;
  /** Searches memory files. @default there are none */
  readonly searchFiles?: (query: string, signal: AbortSignal) => Promise<readonly MemoryPlace[]>;
  /**
   * Returns the search by meaning of an agent; null for an agent whose vectors are not kept. The texts of questions go to
   * its embedder. @default words are compared
   */
  readonly meaningOf?: (agentId: string) => Promise<MeaningSearch | null>;
  /** Limits the estimated tokens of one result. */
  readonly resultTokens: number;
  /** Sets the milliseconds after which a call ends with partial results or a failure. */
  readonly callTimeoutMs: number;
  /** Receives failures of which the client gets only the code. */
  readonly onError: (error: unknown) => void;
}
