import type { SessionHead } from "@throughline/core";

/** The head of a transcript that has lost its last records: whose turn it is was saved behind them. */
export function withSavedTurn(head: SessionHead, saved: SessionHead | null): SessionHead {
  return saved === null || saved.lastSeq <= head.lastSeq ? head : { ...head, fence: saved.fence, turn: saved.turn };
}
