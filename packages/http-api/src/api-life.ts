import { hasErrorCode } from "@throughline/core";
import { within } from "@throughline/gateway/internal";
import type { ApiParts } from "./http/answer-request.ts";

/** Limits how long startup waits for the token list, so that the server also starts while its store does not answer. */
const mostTokenWaitMs = 5000;
/**
 * Other processes revoke tokens too. At this interval a revocation reaches every node and every open response within 5
 * s.
 */
const tokenEveryMs = 2000;
/** Clients of event streams wait this long before they reconnect, because the node is stopping. */
const retryMs = 1000;

/**
 * Loads the tokens before a server listens: a node that has just started must not reject a valid token. A store that is
 * away does not prevent the start.
 */
export async function loadTokens({ context: { tokens, clock }, log }: ApiParts): Promise<void> {
  try {
    await within(clock, tokens.refresh(), mostTokenWaitMs);
  } catch (error) {
    if (!hasErrorCode(error, "STORE_UNREACHABLE", "STORE_OVERLOADED", "STORE_LOCKED")) throw error;
    log.failed("The store cannot be reached yet; requests are answered once it can.", error);
  }
}

export function refreshTokens({ context: { tokens, live }, log }: ApiParts): NodeJS.Timeout {
  const refresh = (): void => {
    // Check open responses before the refresh as well, because a token also expires while the store is away.
    live.check();
    tokens
      .refresh()
      .then(() => live.check())
      .catch((error: unknown) => log.failed("The tokens could not be read.", error));
  };
  return setInterval(refresh, tokenEveryMs).unref();
}

/** Refuses new requests and ends event streams. Requests that run are answered. */
export function stopServing({ context, readiness }: ApiParts): void {
  context.drain();
  readiness.servesWhileDraining = false;
  context.streams.bye(retryMs);
}

/** Ends what runs in the background, once the last request is answered. */
export async function closeParts({
  context: { streams, hub, usage, callUsage, summaries },
  metrics,
}: ApiParts): Promise<void> {
  streams.close();
  hub.close();
  usage.close();
  metrics.close();
  await Promise.all([callUsage.close(), summaries.checkpointer.close(), summaries.retries.close()]);
}
