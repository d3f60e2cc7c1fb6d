import type { DestinationStream } from "pino";
import type { Clock, SessionEventListener, SessionStore } from "@throughline/core";
import type { GatewaySettings } from "@throughline/gateway/internal";
import type { SessionPolicyOptions } from "@throughline/session/internal";
import type { LogLevel } from "./operations/request-log.ts";
import type { SummaryOptions } from "./summaries.ts";
import type { TokenStore } from "./security/token-store.ts";

export interface ServerLimits {
  /** Limits a request body in bytes. The default fits a batch of the largest size with its JSON around it. */
  readonly bodyBytes: number;
  /**
   * Limits how long a request body of the server's own API may take to arrive, in milliseconds. It also limits how long
   * an answer may wait for its client.
   */
  readonly bodyMs: number;
  readonly headerBytes: number;
  readonly headerLines: number;
  readonly urlBytes: number;
  readonly jsonLevels: number;
  readonly jsonValues: number;
  readonly streamsPerToken: number;
  readonly streams: number;
  readonly requestsPerMinute: number;
  readonly requestBurst: number;
  readonly failedTokensPerMinute: number;
  /** Limits the calls of one token through the gateway. */
  readonly gatewayCallsPerMinute: number;
  readonly gatewayBurst: number;
  /** Limits the bytes of all request bodies that are held at the same time. */
  readonly inFlightBytes: number;
  readonly inFlightBytesPerToken: number;
}

const mebibyte = 1024 * 1024;

export const defaultLimits: ServerLimits = Object.freeze({
  bodyBytes: 36 * mebibyte,
  bodyMs: 60_000,
  headerBytes: 64 * 1024,
  headerLines: 1000,
  urlBytes: 8 * 1024,
  // A record may have 200 levels. The draft, the list of drafts and the body add the others.
  jsonLevels: 204,
  jsonValues: 1_000_000,
  streamsPerToken: 200,
  streams: 20_000,
  requestsPerMinute: 600,
  requestBurst: 200,
  failedTokensPerMinute: 10,
  gatewayCallsPerMinute: 600,
  gatewayBurst: 200,
  inFlightBytes: 512 * mebibyte,
  inFlightBytesPerToken: 256 * mebibyte,
});

export const defaultAuditDays = 365;

export interface ServerOptions {
  /** Opens the session store; the server closes it. The listener receives the events of the store. */
  readonly openStore: (onEvent: SessionEventListener) => SessionStore | Promise<SessionStore>;
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** Sets the port; 0 selects a free port. @default 4788 */
  readonly port?: number;
  /** Sets the address that clients use when a proxy is in front. @default the own address */
  readonly publicUrl?: string;
  /** Allows host names that clients use, beside loopback and `publicUrl`. @default none */
  readonly allowedHosts?: readonly string[];
  /** Allows pages of other origins to call the server: `https://app.example`. @default none */
  readonly allowedOrigins?: readonly string[];
  /** Trusts the `x-forwarded-for` header of these proxy addresses. @default none */
  readonly trustedProxies?: readonly string[];
  readonly limits?: Partial<ServerLimits>;
  /**
   * Authenticates the cursors of lists with these 32 bytes. All nodes of a service must share them. @default random
   * ones
   */
  readonly cursorKey?: Uint8Array;
  /** Receives the log, one line of JSON per entry. @default nowhere */
  readonly log?: DestinationStream;
  /** @default "info" */
  readonly logLevel?: LogLevel;
  /**
   * Keeps accepting connections for this time after a drain starts, in milliseconds, so that a load balancer notices
   * it. @default 0
   */
  readonly drainDelayMs?: number;
  /** Keeps audit events for this number of days; 0 keeps them forever. Whole months are removed. @default 365 */
  readonly auditDays?: number;
  /** Is called after the last request ended, before the store closes. */
  readonly onStopping?: (tokens: TokenStore) => Promise<void>;
  /**
   * Sets the sessions in which turns may begin, and when a session resets before a turn. @default what their entries
   * say, and never
   */
  readonly sessionPolicy?: SessionPolicyOptions;
  /** Configures the writers of summaries and checkpoints. @default rules, without a model */
  readonly summaries?: SummaryOptions;
  /** Configures the providers of the gateway, whose calls are stored. @default none */
  readonly gateway?: GatewaySettings;
  /** @default the system's clock */
  readonly clock?: Clock;
  /** Sets the version that the server reports. @default the version of this package */
  readonly version?: string;
}
