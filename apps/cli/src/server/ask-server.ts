import { createHttpClient, readFailure } from "@throughline/store-http/internal";
import { findToken, type TokenPlaces } from "./server-access.ts";

type AskServer = <Answer>(
  request: Omit<Parameters<ReturnType<typeof createHttpClient>["json"]>[0], "signal">,
) => Promise<Answer>;

interface AskedServer {
  readonly tokenPlaces: TokenPlaces;
  readonly signal: AbortSignal;
}

/** Returns a function that sends requests to a server with the token that is kept for it. */
export function createAskServer(url: string, { tokenPlaces, signal }: AskedServer): AskServer {
  const token = findToken(url, tokenPlaces);
  const client = createHttpClient({ url, ...(token === undefined ? {} : { token }) });
  return async (request) => {
    try {
      return await client.json({ ...request, signal });
    } catch (error) {
      signal.throwIfAborted();
      throw readFailure(error, url).error;
    }
  };
}
