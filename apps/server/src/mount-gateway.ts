import type { IncomingMessage, ServerResponse } from "node:http";
import { monotonicMs } from "@throughline/core/internal";
import { createGatewayHandlers, type GatewayHandlers, type Upstream } from "@throughline/gateway/internal";
import { type ApiServices, createRateLimits, type Neighbor } from "@throughline/http-api/internal";
import { createExtractiveSummarizer } from "@throughline/summarizer-providers";
import type { ServerOptions } from "./server-options.ts";

export interface MountedGateway {
  readonly handlers: GatewayHandlers;
  /** Returns null for a request to the session API. */
  neighborOf(request: IncomingMessage, response: ServerResponse): Neighbor | null;
  /** Exempts a token from the rate limit of calls. */
  exempt(tokenId: string): void;
}

/** Opens the gateway over the store, the body budget and the metrics of the API. */
export async function mountGateway(
  options: ServerOptions,
  upstreams: ReadonlyMap<string, Upstream> | null,
  { store, limits, turnRules, bodies, clock, summaries, metrics, log }: ApiServices,
): Promise<MountedGateway | null> {
  if (upstreams === null || options.gateway === undefined) return null;
  const { gatewayCallsPerMinute, gatewayBurst } = limits;
  const rates = createRateLimits({ requestsPerMinute: gatewayCallsPerMinute, requestBurst: gatewayBurst }, monotonicMs);
  const handlers = await createGatewayHandlers(options.gateway, {
    upstreams,
    store,
    turnRules,
    bodies,
    clock,
    log,
    metrics: metrics.registry,
    estimator: summaries.estimator,
    summarizers: [...(options.summaries?.summarizers ?? []), createExtractiveSummarizer()],
  });
  return {
    handlers,
    neighborOf(request, response) {
      const upstream = handlers.upstreamOf(request.url ?? "");
      if (upstream === null) return null;
      return {
        route: `/${upstream.name}`,
        answer: (authenticate) =>
          handlers.answer({
            upstream,
            request,
            response,
            authenticate: async (text) => {
              const token = await authenticate(text);
              rates.take(token.id);
              return token;
            },
          }),
        refuse: (error) => handlers.refuse(upstream, request, response, error),
      };
    },
    exempt: (tokenId) => rates.exempt(tokenId),
  };
}
