import { ThroughlineError } from "@throughline/core";
import type { SessionRef, SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/node";
import type { Output } from "./output.ts";

/** How long a command waits for a turn that is running before it gives up. */
const patienceMs = 15_000;
const pollMs = 200;

/**
 * Waits until no turn is open, or the lease of the open one ran out: a session is not taken from under a running agent.
 * @throws {ThroughlineError} SESSION_BUSY after 15 s, ABORTED
 */
export async function waitForTurn(
  store: SessionStore,
  ref: SessionRef,
  { output, signal }: { readonly output: Output; readonly signal: AbortSignal },
): Promise<void> {
  const untilMs = systemClock.nowMs() + patienceMs;
  for (;;) {
    const turn = (await store.load(ref, { signal }))?.head.turn ?? null;
    const nowMs = systemClock.nowMs();
    if (turn === null || turn.leaseUntilMs <= nowMs) return;
    if (nowMs >= untilMs) {
      const message = `${turn.owner} has had a turn of ${JSON.stringify(ref.key)} open for longer than ${patienceMs} ms were waited.`;
      throw new ThroughlineError("SESSION_BUSY", message, { outcome: "not-applied", details: { ...turn } });
    }
    output.progress(`waiting for the turn of ${turn.owner} to end`);
    await systemClock.sleep(pollMs, signal);
  }
}
