import type { SessionEventListener, SessionStore } from "@throughline/core";
import type { GatewaySettings } from "@throughline/gateway/internal";
import type { SessionApiOptions, SourceFiles, TokenRights, TokenStore } from "@throughline/http-api/internal";

export interface ServerOptions extends Omit<SessionApiOptions, "store" | "gateway"> {
  /** Opens the session store; the server closes it. The listener receives the events of the store. */
  readonly openStore: (onEvent: SessionEventListener) => SessionStore | Promise<SessionStore>;
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** Sets the port; 0 selects a free port. @default 4788 */
  readonly port?: number;
  /**
   * Keeps accepting connections for this time after a drain starts, in milliseconds, so that a load balancer notices
   * it. @default 0
   */
  readonly drainDelayMs?: number;
  /** Is called after the last request ended, before the store closes. */
  readonly onStopping?: (tokens: TokenStore) => Promise<void>;
  /** Configures the providers of the gateway, whose calls are stored. @default none */
  readonly gateway?: GatewaySettings;
  /** Names the folder with the built files of the page, served at `/inspect/`. @default none: the path is not found */
  readonly inspect?: string;
  /**
   * Sets the rights of one token that is in memory only, and has no rate limit. No token of the store is valid then,
   * and the routes of the server write nothing to the store. @default the tokens of the store
   */
  readonly localToken?: TokenRights;
  /** Sets the version that the server reports. @default the version of the API */
  readonly version?: string;
  /** Looks at the files of imported sessions, for a server of one user. @default nothing looks at them */
  readonly sourceFiles?: SourceFiles;
}
