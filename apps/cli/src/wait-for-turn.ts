import { ThroughlineError, type SessionRef, type SessionStore } from "@throughline/core";
import {
  stillAnswering,
  systemClock,
  turnHolder,
  waitForTurnEnd,
  type WaitForTurnOptions,
} from "@throughline/core/internal";
import type { Output } from "./output.ts";

interface WaitingCommand {
  readonly output: Output;
  readonly signal: AbortSignal;
}

/** How a command waits for a turn that runs: as long as core does, and it says for whom. */
export function patience({ output, signal }: WaitingCommand): WaitForTurnOptions {
  return {
    clock: systemClock,
    signal,
    onWait: (owner) => output.progress(`waiting for ${turnHolder(owner)} to answer`),
  };
}

/**
 * Waits until nothing runs in the session: it is not taken from under a running agent.
 * @throws {ThroughlineError} SESSION_BUSY, ABORTED
 */
export function waitForTurn(store: SessionStore, ref: SessionRef, command: WaitingCommand): Promise<void> {
  return waitForTurnEnd(store, ref, patience(command));
}

/** The refusal of work in a session whose turn is open; null for a turn of this process. */
export function busyWith(turn: { readonly owner: string } | null): ThroughlineError {
  const message = turn === null ? "This process is still answering in this session." : stillAnswering(turn.owner);
  return new ThroughlineError("SESSION_BUSY", message, { outcome: "not-applied", details: { ...turn } });
}
