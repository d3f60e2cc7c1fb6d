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

/** Uses core's wait and prints the turn's holder while it waits. */
export function waitOptions({ output, signal }: WaitingCommand): WaitForTurnOptions {
  return {
    clock: systemClock,
    signal,
    onWait: (owner) => output.progress(`waiting for ${turnHolder(owner)} to answer`),
  };
}

/**
 * Waits for a running turn, so that a command does not change a session under a running agent.
 * @throws {ThroughlineError} SESSION_BUSY, ABORTED
 */
export function waitForTurn(store: SessionStore, ref: SessionRef, command: WaitingCommand): Promise<void> {
  return waitForTurnEnd(store, ref, waitOptions(command));
}

/** Reports a session with an open turn; a null `turn` belongs to this process. */
export function busyWith(turn: { readonly owner: string } | null): ThroughlineError {
  const message = turn === null ? "This process is still answering in this session." : stillAnswering(turn.owner);
  return new ThroughlineError("SESSION_BUSY", message, { outcome: "not-applied", details: { ...turn } });
}
