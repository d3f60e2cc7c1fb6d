import type { DestinationStream } from "pino";
import type { Clock, SessionEventListener, SessionStore } from "@throughline/core";
import type { LogLevel } from "./operations/request-log.ts";
import type { SummaryOptions } from "./summaries.ts";
import type { GatewayOptions } from "./gateway/gateway-options.ts";
import type { SessionPolicyOptions } from "./turn-rules.ts";
import type { TokenStore } from "./security/token-store.ts";

export interface ServerLimits {
  /** Largest body of a request: a batch of the largest size and its frame. */
  readonly bodyBytes: number;
  /** How long the body of a request to the own API may take to arrive, and an answer may wait to be read on. */
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
  /** Calls of one token through the gateway. */
  readonly gatewayCallsPerMinute: number;
  readonly gatewayBurst: number;
  /** The most bytes that the bodies of all requests that are being answered may have together. */
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
  // A record may have 200, and lies in a draft, the list of them and the body.
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
  /** Opens the store of the sessions, which the server closes. What the store announces goes to the listener. */
  readonly openStore: (onEvent: SessionEventListener) => SessionStore | Promise<SessionStore>;
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** 0 takes a free one. @default 4788 */
  readonly port?: number;
  /** The address that clients use, where a proxy stands in front. @default the own address */
  readonly publicUrl?: string;
  /** Names that clients use beside those of loopback and of `publicUrl`. @default none */
  readonly allowedHosts?: readonly string[];
  /** Pages of other origins that may call the server: `https://app.example`. @default none */
  readonly allowedOrigins?: readonly string[];
  /** Addresses of proxies whose `x-forwarded-for` counts. @default none */
  readonly trustedProxies?: readonly string[];
  readonly limits?: Partial<ServerLimits>;
  /** 32 bytes that seal the cursors of lists; every node of a service has the same. @default random ones */
  readonly cursorKey?: Uint8Array;
  /** Where the log goes, a line of JSON an entry. @default nowhere */
  readonly log?: DestinationStream;
  /** @default "info" */
  readonly logLevel?: LogLevel;
  /** While draining, how long connections are still taken, so that a balancer sees it, in milliseconds. @default 0 */
  readonly drainDelayMs?: number;
  /** How long events of the audit log are kept, in days; 0: for ever. Whole months are removed. @default 365 */
  readonly auditDays?: number;
  /** Called when requests have ended, before the store is closed. */
  readonly onStopping?: (tokens: TokenStore) => Promise<void>;
  /** In which sessions turns may begin, and when sessions reset before one. @default what their entries say, and never */
  readonly sessionPolicy?: SessionPolicyOptions;
  /** Who writes summaries and checkpoints. @default rules, without a model */
  readonly summaries?: SummaryOptions;
  /** Providers that requests are passed on to, and stored. @default none */
  readonly gateway?: GatewayOptions;
  /** @default the system's clock */
  readonly clock?: Clock;
  /** What the server calls itself. @default the version of this package */
  readonly version?: string;
}
