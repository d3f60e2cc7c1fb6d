import type { Reply } from "../http/exchange.ts";

/** Tracks open answers by token, because a revocation must end them too. */
export interface LiveAnswers {
  /**
   * Tracks an answer until it closes.
   *
   * @param onInvalid ends the answer when its token becomes invalid; by default the connection is cut
   */
  add(tokenId: string, response: Reply, onInvalid?: () => void): void;
  check(): void;
  /** Resolves once no answer is open. */
  settled(): Promise<void>;
  /** Cuts the answers that are still open. */
  cut(): void;
}

/** @param isValid returns the current validity, because the token info of the request may be outdated */
export function createLiveAnswers(isValid: (tokenId: string) => boolean): LiveAnswers {
  const open = new Map<Reply, { readonly tokenId: string; readonly onInvalid: () => void }>();
  let onSettled = (): void => {};
  const closed = (response: Reply): void => {
    open.delete(response);
    if (open.size === 0) onSettled();
  };
  return {
    add(tokenId, response, onInvalid = () => void response.destroy()) {
      if (response.closed) return;
      if (!open.has(response)) response.once("close", () => closed(response));
      open.set(response, { tokenId, onInvalid });
    },
    check() {
      for (const [, { tokenId, onInvalid }] of open) if (!isValid(tokenId)) onInvalid();
    },
    settled: () => new Promise((resolve) => (open.size === 0 ? resolve() : (onSettled = resolve))),
    cut() {
      for (const response of open.keys()) response.destroy();
    },
  };
}
