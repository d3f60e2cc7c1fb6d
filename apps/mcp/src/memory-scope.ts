import type { SessionStore } from "@throughline/core";

/** What a client may see and do. The configuration and the token decide it; no argument of a call widens it. */
export interface MemoryScope {
  readonly namespace: string;
  /** The agent whose notes are kept, and to whom a key belongs that names none. */
  readonly agentId: string;
  /** Agents whose sessions are seen; `*`: all of the namespace. */
  readonly agents: readonly string[] | "*";
  /** Sessions whose key begins with one of these are seen; without any, all of the agents. */
  readonly keyPrefixes: readonly string[];
  /** Whether `add_note` is offered. */
  readonly allowNotes: boolean;
}

/** A place in a memory file. */
export interface MemoryPlace {
  readonly path: string;
  readonly firstLine: number;
  readonly lastLine: number;
  readonly snippet: string;
}

/** What a server of memory works with. */
export interface MemoryServerOptions {
  readonly version: string;
  /**
   * Gives the store of a call, which the caller keeps and closes. It is asked for each call, because a store may be made
   * while the server runs. Only a note asks to write.
   */
  readonly openStore: (purpose: "read" | "write") => Promise<SessionStore>;
  /** Searches memory files. @default there are none */
  readonly searchFiles?: (query: string, signal: AbortSignal) => Promise<readonly MemoryPlace[]>;
  /** The most tokens of one result, as estimated without a vocabulary. */
  readonly resultTokens: number;
  /** Milliseconds after which a call is answered with what was found, or with a failure. */
  readonly callTimeoutMs: number;
  /** Told of failures that a client only gets the code of. */
  readonly onError: (error: unknown) => void;
}
