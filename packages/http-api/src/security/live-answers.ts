import type { ServerResponse } from "node:http";

/** Tracks open answers by token, because a revocation must end them too. */
export interface LiveAnswers {
  /**
   * Tracks an answer until it closes.
   *
   * @param onInvalid ends the answer when its token becomes invalid; by default the connection is cut
   */
  add(tokenId: string, response: ServerResponse, onInvalid?: () => void): void;
  check(): void;
}

/** @param isValid returns the current validity, because the token info of the request may be outdated */
export function createLiveAnswers(isValid: (tokenId: string) => boolean): LiveAnswers {
  const open = new Map<ServerResponse, { readonly tokenId: string; readonly onInvalid: () => void }>();
  return {
    add(tokenId, response, onInvalid = () => void response.destroy()) {
      if (response.closed) return;
      if (!open.has(response)) response.once("close", () => open.delete(response));
      open.set(response, { tokenId, onInvalid });
    },
    check() {
      for (const [response, { tokenId, onInvalid }] of open) {
        if (isValid(tokenId)) continue;
        open.delete(response);
        onInvalid();
      }
    },
  };
}
