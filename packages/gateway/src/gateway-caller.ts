import type { GatewayMode } from "./gateway-options.ts";

/** Describes who sends a call, and what it may do. */
export interface GatewayCaller {
  /** Is part of the keys of the caller's sessions, so that two callers never share one: 1 to 40 of a-z and 0-9. */
  readonly id: string;
  /** Holds the caller's sessions. With `*`, each request names its namespace in `throughline-namespace`. */
  readonly namespace: string;
  /** Owns the caller's sessions: the first one of a list, or `main` for `*`. */
  readonly agents: readonly string[] | "*";
  /**
   * Lists rights. `gateway:NAME` allows calls through the upstream of this name, and `gateway:manage` changes to the
   * models of an Ollama upstream. With `write`, and also `read` outside of record mode, the caller may name sessions
   * that it did not create.
   */
  readonly scopes: readonly string[];
  /** Sets the mode of the caller's calls. Null uses the mode of the upstream. @default null */
  readonly mode?: GatewayMode | null;
}
