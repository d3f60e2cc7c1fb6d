import type { ServerResponse } from "node:http";

/** The answers that are being given, each with the token of its request. */
export interface LiveAnswers {
  /**
   * Watches an answer until it is closed.
   *
   * @param onInvalid ends the answer once its token is no longer valid; the connection is cut without it
   */
  add(tokenId: string, response: ServerResponse, onInvalid?: () => void): void;
  /** Ends the answers whose tokens are no longer valid. */
  check(): void;
}

/** @param isValid asked with the id of a token: what a request knew of its token may be out of date */
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
