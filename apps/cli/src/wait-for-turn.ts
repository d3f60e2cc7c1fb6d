import type { SessionRef, SessionStore } from "@throughline/core";
import { waitForTurnEnd, type WaitForTurnOptions } from "@throughline/core/internal";
import { systemClock } from "@throughline/core/node";
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
    onWait: (owner) => output.progress(`waiting for the turn of ${owner} to end`),
  };
}

/**
 * Waits until nothing runs in the session: it is not taken from under a running agent.
 * @throws {ThroughlineError} SESSION_BUSY, ABORTED
 */
export function waitForTurn(store: SessionStore, ref: SessionRef, command: WaitingCommand): Promise<void> {
  return waitForTurnEnd(store, ref, patience(command));
}
