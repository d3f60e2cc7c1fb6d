import type { Clock, SessionStore } from "@throughline/core";
import type { Gateway } from "@throughline/gateway";
import type { SessionPolicyOptions } from "@throughline/session/internal";
import type { LogDestination, LogLevel } from "./operations/request-log.ts";
import type { SummaryOptions } from "./summaries.ts";

/** Limits the requests to the session API. */
export interface SessionApiLimits {
  /** Limits a request body in bytes. The default fits a batch of the largest size with its JSON around it. @default 36 MiB */
  readonly bodyBytes: number;
  /**
   * Limits how long a request body may take to arrive, in milliseconds. It also limits how long an answer may wait for
   * its client.
   */
  readonly bodyMs: number;
  /** States how many bytes of headers the server takes. The server checks it; the API only reports it to clients. */
  readonly headerBytes: number;
  /** Limits the header lines of a request. @default 1000 */
  readonly headerLines: number;
  /** Limits the path and query of a request in bytes. @default 8192 */
  readonly urlBytes: number;
  /** Limits how deep the JSON of a body is nested. @default 204 */
  readonly jsonLevels: number;
  /** Limits the values in the JSON of a body. @default 1000000 */
  readonly jsonValues: number;
  /** Limits the open event streams of one token or caller. @default 200 */
  readonly streamsPerToken: number;
  /** Limits the open event streams of the process. @default 20000 */
  readonly streams: number;
  /** Limits how many requests a minute one token or caller may send in the long run. @default 600 */
  readonly requestsPerMinute: number;
  /** Limits how many requests one token or caller may send at once after a pause. @default 200 */
  readonly requestBurst: number;
  /** Limits the wrong tokens of one address in a minute. @default 10 */
  readonly failedTokensPerMinute: number;
  /** States how many calls a minute one token may send through the gateway. The gateway checks it. @default 600 */
  readonly gatewayCallsPerMinute: number;
  /** States how many such calls one token may send at once after a pause. @default 200 */
  readonly gatewayBurst: number;
  /** Limits the bytes of all request bodies that are held at the same time. @default 512 MiB */
  readonly inFlightBytes: number;
  /** Limits the same for one token or caller. @default 256 MiB */
  readonly inFlightBytesPerToken: number;
}

const mebibyte = 1024 * 1024;

export const defaultLimits: SessionApiLimits = Object.freeze({
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

/** Configures `createSessionApi`. */
export interface SessionApiOptions {
  /** Holds the sessions. The API never closes it. */
  readonly store: SessionStore;
  /** Sets the address that clients use when a proxy is in front: its host name and origin are allowed. @default none */
  readonly publicUrl?: string | undefined;
  /** Allows host names that clients use, beside loopback and `publicUrl`. @default none */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Allows pages of other origins to call the API: `https://app.example`. @default none */
  readonly allowedOrigins?: readonly string[] | undefined;
  /** Trusts the `x-forwarded-for` header of these proxy addresses. @default none */
  readonly trustedProxies?: readonly string[] | undefined;
  /** Replaces single limits. @default those of the guide "run the server" */
  readonly limits?: Partial<SessionApiLimits> | undefined;
  /**
   * Authenticates the cursors of lists with these 32 bytes. All nodes of a service must share them. @default random
   * ones
   */
  readonly cursorKey?: Uint8Array | undefined;
  /** Receives the log, one line of JSON per entry. @default nowhere */
  readonly log?: LogDestination | undefined;
  /** Sets the least severity of a log entry. @default "info" */
  readonly logLevel?: LogLevel | undefined;
  /** Keeps audit events for this number of days; 0 keeps them forever. Whole months are removed. @default 365 */
  readonly auditDays?: number | undefined;
  /**
   * Sets the sessions in which turns may begin, and when a session resets before a turn. @default what their entries
   * say, and never
   */
  readonly sessionPolicy?: SessionPolicyOptions | undefined;
  /** Configures the writers of summaries and checkpoints. @default rules, without a model */
  readonly summaries?: SummaryOptions | undefined;
  /** Is the gateway beside the API, which must learn of changes and erasures. @default none */
  readonly gateway?: NeighborGateway | undefined;
  /** Measures times and waits. @default the system's clock */
  readonly clock?: Clock | undefined;
}

/** Holds what the API needs of a gateway that serves the same store. */
export type NeighborGateway = Pick<Gateway, "forget" | "erased" | "isWaiting" | "unstored">;
