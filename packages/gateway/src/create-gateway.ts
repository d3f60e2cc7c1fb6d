import type { IncomingMessage, ServerResponse } from "node:http";
import process from "node:process";
import { type Clock, type SessionRef, type SessionStore, type Summarizer, ThroughlineError } from "@throughline/core";
import {
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  portKinds,
  refused,
  systemClock,
} from "@throughline/core/internal";
import { createTurnRules } from "@throughline/session/internal";
import { createExtractiveSummarizer } from "@throughline/summarizer-providers";
import { createTokenEstimator, type TokenEstimator } from "@throughline/tokens";
import type { GatewayCaller } from "./gateway-caller.ts";
import { createGatewayHandlers } from "./gateway.ts";
import { noMetrics } from "./gateway-metrics.ts";
import { type GatewaySettings, upstreamsOf } from "./gateway-options.ts";
import { createBodyBudget } from "./http/body-budget.ts";

/** Configures `createGateway`. */
export interface GatewayOptions extends GatewaySettings {
  /** Stores the calls as sessions. The gateway never closes it. */
  readonly store: SessionStore;
  /**
   * Holds the journal, which keeps each call from the end of its answer until the store has it. No other process may use
   * the folder, and its files hold conversations.
   */
  readonly spoolFolder: string;
  /**
   * Identifies the caller by the token of its request. Null refuses the request with status 401. The token comes from
   * `authorization` or `x-api-key` with `server` credentials, and from `throughline-token` with `caller` credentials.
   */
  readonly authenticate: (
    token: string | null,
    request: IncomingMessage,
  ) => GatewayCaller | null | Promise<GatewayCaller | null>;
  /** Write the summaries of guard mode, in order of preference. @default rules, without a model */
  readonly summarizers?: readonly Summarizer[] | undefined;
  /** Counts tokens in guard mode. @default an estimator of this gateway */
  readonly estimator?: TokenEstimator | undefined;
  /** Receives failures that no client sees, such as a call that could not be stored. @default a warning of the process */
  readonly onFailure?: ((message: string, error: unknown) => void) | undefined;
  /** Measures times and waits. @default the system's clock */
  readonly clock?: Clock | undefined;
}

/** Passes requests on to model providers and stores each call in a session. */
export interface Gateway {
  /**
   * Answers a request whose path begins with the name of an upstream, also with its errors. Resolves with false for any
   * other path, which stays unanswered.
   */
  handle(request: IncomingMessage, response: ServerResponse): Promise<boolean>;
  /** Drops what it remembers of a session. Call it when another component changed the session. */
  forget(ref: SessionRef): void;
  /**
   * Removes what waits for the store of a purged session. After a redaction, waiting calls are stored without the
   * redacted text.
   *
   * @returns how many waiting calls may still hold text of the session
   */
  erased(ref: SessionRef, isPurged: boolean): Promise<number>;
  /** Is true while calls wait for the store, and for a minute after a call was lost. */
  readonly isWaiting: boolean;
  /** Counts the calls that ended and that the store does not have yet, with the age of the oldest in milliseconds. */
  readonly unstored: {
    /** Counts the calls. */
    readonly calls: number;
    /** States the age of the oldest call in milliseconds; 0 without one. */
    readonly oldestMs: number;
  };
  /** Stops taking calls and stores those that ended. Calls that the store does not take in time stay in the folder. */
  close(): Promise<void>;
}

const { callback, filledText, integer, listOf, object, objectWith, oneOf, required } = optionKinds;

export const gatewayTable: OptionTable<GatewayOptions> = {
  store: required(portKinds.store),
  upstreams: required(object),
  spoolFolder: required(filledText),
  spoolBytes: integer({ min: 1 }),
  spoolCodec: objectWith("encode", "decode"),
  onStoreDown: oneOf(["spool", "refuse", "pass"]),
  proxyVariables: object,
  authenticate: required(callback),
  summarizers: listOf(portKinds.summarizer),
  estimator: objectWith("counterFor"),
  onFailure: callback,
  clock: portKinds.clock,
};

const bodyLimits = { inFlightBytes: 512 * 1024 ** 2, inFlightBytesPerToken: 256 * 1024 ** 2 } as const;

/**
 * Opens a gateway for a server of your own. Mount it behind the checks of that server: host, origin and rates.
 *
 * @throws {ThroughlineError} CONFIG_INVALID for an option that is not known, has another type, or is out of range
 * @example
 *   const gateway = await createGateway({ store, spoolFolder, upstreams: { anthropic: { api: "anthropic" } }, authenticate });
 *   createServer(async (request, response) => {
 *     if (!(await gateway.handle(request, response))) response.writeHead(404).end();
 *   });
 */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  assertKnownOptions<GatewayOptions>("createGateway", options, gatewayTable, "options", "CONFIG_INVALID");
  const { store, clock = systemClock, onFailure = warn, authenticate, ...rest } = options;
  const handlers = await createGatewayHandlers(options, {
    upstreams: upstreamsOf(options),
    store,
    turnRules: createTurnRules({}, clock),
    bodies: createBodyBudget(bodyLimits),
    clock,
    log: { failed: onFailure },
    metrics: noMetrics,
    estimator: rest.estimator ?? createTokenEstimator(),
    summarizers: rest.summarizers ?? [createExtractiveSummarizer()],
  });
  return {
    handle: async (request, response) => {
      const upstream = handlers.upstreamOf(request.url ?? "");
      if (upstream === null) return false;
      try {
        const authenticated = async (token: string | null): Promise<GatewayCaller> =>
          callerOf(await authenticate(token, request));
        await handlers.answer({ upstream, request, response, authenticate: authenticated });
      } catch (error) {
        if (!ThroughlineError.isInstance(error)) onFailure("A call of the gateway failed.", error);
        handlers.refuse(upstream, request, response, error);
      }
      return true;
    },
    forget: (ref) => handlers.forget(ref),
    erased: (ref, isPurged) => handlers.erased(ref, isPurged),
    get isWaiting() {
      return handlers.isWaiting;
    },
    get unstored() {
      return handlers.unstored;
    },
    close: () => handlers.close(),
  };
}

function callerOf(caller: GatewayCaller | null): GatewayCaller {
  if (caller === null) throw refused("UNAUTHENTICATED", "The gateway does not know the token of the request.");
  // The id is a part of session keys, where other characters have a meaning.
  if (/^[a-z0-9]{1,40}$/.test(caller.id)) return caller;
  throw new TypeError("authenticate() must give an id of 1 to 40 of a-z and 0-9.");
}

function warn(message: string): void {
  process.emitWarning(message, "ThroughlineWarning");
}
